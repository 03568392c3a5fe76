"""Types while they are inferred: unknowns, the context of one body, conversions that are suggested."""

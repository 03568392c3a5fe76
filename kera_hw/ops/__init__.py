"""The op registry: every operation stated once, everything else derived from its row."""

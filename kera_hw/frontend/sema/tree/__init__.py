"""The typed tree between checking and lowering, and walks over it."""

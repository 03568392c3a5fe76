"""Exact arithmetic, scalar and array: the meaning of every number format."""

"""Processors: loop programs in native operations as machine code."""

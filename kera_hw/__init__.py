"""Kera HW: programs that are graphs, with the same bits on every target."""

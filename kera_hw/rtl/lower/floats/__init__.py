"""Floating-point units as graphs of operations on integers."""

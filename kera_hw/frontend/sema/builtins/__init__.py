"""Checking of built-in functions by family."""

"""Checking by kind of syntax: expressions, statements, patterns, functions, whole programs."""

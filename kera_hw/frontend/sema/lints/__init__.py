"""Findings in programs without errors: names that nothing uses, values that cannot matter."""

"""Statements of native loop programs as machine code, for any processor: control, addresses, lanes."""

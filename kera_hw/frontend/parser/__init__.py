"""Lexer and event parser; parsing never fails and never hangs."""

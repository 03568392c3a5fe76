"""Constant expressions: what they cost, and their values by the reference evaluator."""

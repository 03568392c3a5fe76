"""Proof that a design computes what its graph says, for every input: terms, their meaning, and the solver.

A proof compares two descriptions that share no code: the specification, made from the source graph with
SMT-LIB's own theories, and the implementation, which is the lowered graph or the emitted netlist.
"""

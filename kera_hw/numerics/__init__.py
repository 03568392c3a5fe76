"""Exact arithmetic on NumPy batch arrays: integers and fixed point of 1 to 64 bits, and floating point.

Arrays are in storage form (``kera_hw.types.numpy_dtype``) and canonical: sign-extended or masked to the
type's width, a NaN the one NaN. Every function gives canonical arrays back; none writes to its operands.
"""

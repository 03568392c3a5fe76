"""Exact arithmetic on NumPy batch arrays: integers and fixed point of every width from 1 to 64 bits.

Arrays are in storage form (``kera_hw.types.numpy_dtype``) and canonical: sign-extended or masked to the
type's width. Every function gives canonical arrays back; none writes to its operands.
"""

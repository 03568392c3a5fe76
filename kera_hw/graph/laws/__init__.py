"""Exact laws of operations, as data: what equals what, for every bit pattern.

One table, two readers: the pass that simplifies graphs, and the builder of circuits' flat regions. Every law
is proved by a test, on all values of small types. Laws that are traits come from the registry.
"""
from kera_hw.graph.laws.floats import FLOATS
from kera_hw.graph.laws.integers import CIRCUITS, INTEGERS, ORDER, PROGRAMS
from kera_hw.graph.laws.shapes import SHAPES
from kera_hw.graph.laws.terms import Book, Law, View, decided

OF_PROGRAMS = Book(INTEGERS, FLOATS, SHAPES, ORDER, PROGRAMS)
"""For graphs: they stay in the operations that were written."""
OF_CIRCUITS = Book(INTEGERS, ORDER, CIRCUITS)
"""For flat regions: integers and bools, in the operations that mapping makes cells of."""

__all__ = [
    "CIRCUITS", "FLOATS", "INTEGERS", "OF_CIRCUITS", "OF_PROGRAMS", "ORDER", "PROGRAMS", "SHAPES", "Book",
    "Law", "View", "decided",
]

"""What operations are made of: rules that write an operation as others, with the same bits on every input.

A rule writes through a builder, so that one rule makes a region of the graph, statements of a loop program or
scalars of a circuit. A reader takes an operation as it is where it has something for it, and its expansion
elsewhere. The rule of an element-wise operation is one on scalars.
"""
from __future__ import annotations

from collections.abc import Mapping

from kera_hw.ops.expansions import bits, composites, elementary, exact, fixedpoint, floats, integers, pooling
from kera_hw.ops.spec import Expansion

EXPANSIONS: Mapping[str, Expansion] = {
    name: rule
    for family in (composites, elementary, exact, pooling, integers, fixedpoint, floats, bits)
    for name, rule in family.EXPANSIONS.items()
}
"""By operation: what the registry puts into the rows."""

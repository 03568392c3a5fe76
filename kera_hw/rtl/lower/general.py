"""Operations without a circuit of their own: each is the program that its expansion is, lowered once."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.graph.expand import Expander
from kera_hw.graph.store import Store
from kera_hw.lower.fragment import Fragment, lower_region
from kera_hw.lower.options import LoweringOptions
from kera_hw.ops.expansions import exact_apart
from kera_hw.ops.spec import Attrs
from kera_hw.types import Type

UNROLLED = LoweringOptions(
    expanding=frozenset({"reduce.max_pool2d", "reduce.avg_pool2d"}), expansions=exact_apart.EXPANSIONS,
    unrolled=True, most=200_000,
)
"""How programs are written that are going to be unrolled. Beyond ``most`` no circuit fits anywhere."""


class General:
    """Programs of expansions, one for equal operations on equal types."""

    def __init__(self) -> None:
        self._expander = Expander(UNROLLED.expansions)
        self._store = Store()
        self._found: dict[tuple[object, ...], Fragment] = {}

    def program_of(self, opcode: str, kinds: Sequence[Type], attrs: Attrs) -> Fragment:
        key = (opcode, tuple(kinds), tuple(attrs.items()))
        found = self._found.get(key)
        if found is None:
            params = [self._store.param(k, kind) for k, kind in enumerate(kinds)]
            region = self._expander.region_of(self._store.node(opcode, params, attrs))
            assert region is not None, f"{opcode} has no circuit, which should have been said before"
            found = self._found[key] = lower_region(region, UNROLLED)
        return found

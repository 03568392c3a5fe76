"""A region's nodes in order, each by its rule; a buffer is overwritten once nobody looks at it any more."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kera_hw.graph.expand import Expander
from kera_hw.graph.node import Node, Origin, Ref, Region, Scopes, within
from kera_hw.loops.program import Affine, Literal, Operand, of_var
from kera_hw.lower.emitter import Emitter, bits_of
from kera_hw.lower.views import Value, View, whole
from kera_hw.types import TensorType, Type, element_type, numpy_dtype, shape_of

Rule = Callable[["Lowering", Node, list[Value]], list[Value]]


@dataclass(frozen=True, slots=True)
class Update:
    """A tensor that was to be overwritten: in place, or for a reason (half a sentence) in a copy."""

    buffer: str
    why_copied: str
    place: Origin | None

    def __str__(self) -> str:
        where = f"{self.place.path}:{self.place.line}: " if self.place is not None else ""
        if not self.why_copied:
            return f"{where}`{self.buffer}` is updated in place"
        return f"{where}`{self.buffer}` is copied, since it {self.why_copied}"


class Lowering:
    """Lowers regions into one emitter.

    ``rules`` has one for every operation that is not refused, unless its expansion is what becomes loops.
    """

    def __init__(
        self, emitter: Emitter, rules: Mapping[str, Rule], origins: Mapping[Node, Origin],
        scopes: Mapping[Region, Scopes],
    ) -> None:
        self.emit = emitter
        self.rules = rules
        self.origins = origins
        self.scopes = scopes
        self._around: Scopes = ()
        self._holders: Counter[str] = Counter()
        self.updates: list[Update] = []
        self._expander = Expander(emitter.options.expansions)

    # Regions

    def region(self, region: Region, args: Sequence[Value]) -> list[Value]:
        """The region's results on arguments by parameter."""
        nodes = region.nodes()
        last = {ref: node for node in nodes for ref in node.inputs}
        kept = set(region.results)
        values: dict[Ref, Value] = {}
        outer, around = self.emit.place, self._around
        self._around = around + self.scopes.get(region, ())
        for node in nodes:  # two arguments may be one buffer, and one be overwritten before the other is read
            if node.opcode == "core.param":
                self._hold(self._argument(node, args), 1)
        for node in nodes:
            inputs = [values[ref] for ref in node.inputs]
            for ref in dict.fromkeys(node.inputs):
                if last[ref] is node and ref not in kept:
                    self._hold(values.pop(ref), -1)
            self.emit.place = within(self.origins.get(node, outer), self._around)
            for index, value in enumerate(self._node(node, inputs, args)):
                values[Ref(node, index)] = value
                self._hold(value, 1)
                if node.opcode == "core.param":
                    self._hold(value, -1)  # as an argument
            for index in range(len(node.types)):  # results that nobody takes
                ref = Ref(node, index)
                if ref not in last and ref not in kept:
                    self._hold(values.pop(ref), -1)
        for ref in kept:
            self._hold(values[ref], -1)
        self.emit.place, self._around = outer, around
        return [values[ref] for ref in region.results]

    def _hold(self, value: Value, change: int) -> None:
        if isinstance(value, View):
            self._holders[value.buffer.name] += change

    @staticmethod
    def _argument(node: Node, args: Sequence[Value]) -> Value:
        index = node.attr("index")
        assert isinstance(index, int)
        return args[index]

    def _node(self, node: Node, inputs: list[Value], args: Sequence[Value]) -> list[Value]:
        if node.opcode == "core.param":
            return [self._argument(node, args)]
        if node.opcode == "core.constant":
            return [self.constant(node)]
        rule = self.rules.get(node.opcode)
        return self.expanded(node, inputs) if rule is None else rule(self, node, inputs)

    def expanded(self, node: Node, inputs: list[Value]) -> list[Value]:
        """The node's results by its expansion."""
        region = self._expander.region_of(node)
        assert region is not None, f"{node.opcode} has no loops, which should have been said before"
        return self.region(region, inputs)

    # Values

    def constant(self, node: Node) -> Value:
        kind, data = node.types[0], node.attr("value")
        assert isinstance(data, bytes)
        if isinstance(kind, TensorType):
            return whole(self.emit.constant(kind.element, kind.shape, data))
        (value,) = np.frombuffer(data, numpy_dtype(kind).newbyteorder("<")).astype(numpy_dtype(kind))
        return Literal(kind, bits_of(kind, value))

    def obstacle(self, value: View, others: Sequence[Value] = ()) -> str:
        """Why a tensor may not be overwritten, as half a sentence; empty if nobody looks at it any more."""
        name = value.buffer.name
        if not value.owned:
            kinds = {"param": "is a parameter", "const": "is a constant"}
            return kinds.get(value.buffer.kind, "is a part of another, or what later rounds need too")
        if not value.is_whole:
            return "is a part of another"
        if self._holders[name] or any(isinstance(it, View) and it.buffer.name == name for it in others):
            return "is used later"
        return ""

    def overwrites(self, value: View, others: Sequence[Value] = ()) -> bool:
        """Whether an update may happen in place, which is noted."""
        why = self.obstacle(value, others)
        self.updates.append(Update(value.buffer.name, why, self.emit.place))
        return not why

    def new(self, kind: Type) -> View:
        """A fresh tensor, to be written once."""
        return whole(self.emit.temp(element_type(kind), shape_of(kind)), owned=True)

    def read(self, value: Value, index: Sequence[Affine]) -> Operand:
        """An element of a tensor; a scalar is the same at every index."""
        return self.emit.load(value.buffer, value.at(index)) if isinstance(value, View) else value

    def write(self, target: View, index: Sequence[Affine], value: Operand) -> None:
        self.emit.store(target.buffer, target.at(index), value)

    def fill(self, kind: Type, element: Callable[[list[Affine]], Operand]) -> View:
        """A tensor by what stands at each index; the loops are parallel."""
        target = self.new(kind)
        self.fill_into(target, element)
        return target

    def fill_into(self, target: View, element: Callable[[list[Affine]], Operand]) -> None:
        with self.emit.nest(target.shape) as variables:
            index = [of_var(var) for var in variables]
            self.write(target, index, element(index))

    def copy_into(self, target: View, source: View) -> None:
        if target != source:
            self.fill_into(target, lambda index: self.read(source, index))

    def owned(self, value: View, others: Sequence[Value] = ()) -> View:
        """A tensor in a buffer of its own that may be overwritten: this one if it may, else a copy."""
        if self.overwrites(value, others):
            return value
        return self.copy(value)

    def copy(self, value: View) -> View:
        kind = TensorType(value.element, value.shape)
        return self.fill(kind, lambda index: self.read(value, index))


def shared(values: Sequence[Value]) -> list[Value]:
    """What a body that runs many times is given: not to be overwritten."""
    return [replace(value, owned=False) if isinstance(value, View) else value for value in values]

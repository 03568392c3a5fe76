"""Laws of operations that move the elements of tensors."""
from __future__ import annotations

from kera_hw.graph.laws.terms import Attrs, Chosen, Known, Law, Match, Op, Var, laws
from kera_hw.graph.node import Ref
from kera_hw.types import is_scalar, shape_of

X, K = Var("x"), Known("k")


def _same_type(m: Match) -> bool:
    return m["x"].type == m.type


def _in_order(m: Match) -> bool:
    axes = m.attrs["axes"]
    return tuple(axes) == tuple(range(len(axes)))


def _composed(m: Match) -> Attrs:
    inner = m["inner"].node.attr("axes")
    assert isinstance(inner, tuple)
    return {"axes": tuple(inner[axis] for axis in m.attrs["axes"])}


def _holds_any(m: Match) -> bool:
    """An empty tensor gives zero, whatever was spread over none of its elements."""
    return 0 not in shape_of(m["source"].type)


def _from_scalar(m: Match) -> bool:
    return is_scalar(m["x"].type)


def _stacked(m: Match) -> Ref:
    """The value at an index, which clamps."""
    items = m["source"].node.inputs
    return items[max(0, min(m.value("k"), len(items) - 1))]


SHAPES: tuple[Law, ...] = (
    *laws("tensor.reshape tensor.broadcast", (X,), X, _same_type),
    *laws("tensor.reshape", (Op("tensor.reshape", (X,)),), Op("tensor.reshape", (X,))),
    *laws("tensor.permute", (X,), X, _in_order),
    *laws("tensor.permute", (Op("tensor.permute", (X,), name="inner"),),
          Op("tensor.permute", (X,), _composed)),
    Law("tensor.index", (Op("tensor.broadcast", (X,), name="source"),), X, (_from_scalar, _holds_any),
        rest=True),
    Law("tensor.index", (Op("tensor.stack", None, name="source"), K), Chosen(_stacked), (_holds_any,)),
)

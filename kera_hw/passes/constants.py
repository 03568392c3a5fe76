"""Reading constants out of nodes, and asking what they are."""
from __future__ import annotations

import numpy as np

from kera_hw.graph import Ref
from kera_hw.ops.spec import Array
from kera_hw.types import FixType, IntType, Type, element_type, numpy_dtype, shape_of


def constant_array(ref: Ref) -> Array | None:
    """The value of a constant without a batch axis, or None."""
    if ref.node.opcode != "core.constant":
        return None
    kind, data = ref.node.attr("type"), ref.node.attr("value")
    assert isinstance(kind, Type) and isinstance(data, bytes)
    dtype = numpy_dtype(kind)
    return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape_of(kind))


def splat_value(ref: Ref) -> int | None:
    """The one raw integer that a constant of ints, fix or bool holds everywhere, or None."""
    kind = element_type(ref.type)
    array = constant_array(ref)
    if array is None or array.size == 0 or kind.__class__.__name__ == "FloatType":
        return None
    first = array.reshape(-1)[0]
    return int(first) if bool(np.all(array == first)) else None


def all_ones(kind: Type) -> int:
    """The raw integer with every bit set, in the type's own range (-1 when signed; 1 for bool)."""
    kind = element_type(kind)
    raw = kind.raw if isinstance(kind, FixType) else kind
    if isinstance(raw, IntType):
        return -1 if raw.signed else raw.max
    return 1

"""Reading constants out of nodes, and asking what they are."""
from __future__ import annotations

import numpy as np

from kera_hw.graph import Ref, Store
from kera_hw.ops.core import decode_constant
from kera_hw.ops.spec import Array
from kera_hw.types import FloatType, Type, element_type, numpy_dtype, shape_of

# A constant larger than this would make the file larger than the program that computes it.
MAX_ELEMENTS = 4096


def constant_array(ref: Ref) -> Array | None:
    """The value of a constant without a batch axis, or None."""
    if ref.node.opcode != "core.constant":
        return None
    kind, data = ref.node.attr("type"), ref.node.attr("value")
    assert isinstance(kind, Type) and isinstance(data, bytes)
    return decode_constant(kind, data)


def splat_value(ref: Ref) -> int | None:
    """The one raw integer (bits of a float) that a constant holds everywhere, or None."""
    array = constant_array(ref)
    if array is None or array.size == 0:
        return None
    if isinstance(element_type(ref.type), FloatType):
        array = np.ascontiguousarray(array).view(np.dtype(f"u{array.dtype.itemsize}"))
    first = array.reshape(-1)[0]
    return int(first) if bool(np.all(array == first)) else None


def constant_of_bits(store: Store, kind: Type, value: int) -> Ref:
    """A constant that holds a raw integer (bits of a float) everywhere."""
    dtype = numpy_dtype(kind)
    if isinstance(element_type(kind), FloatType):
        bits = np.full(shape_of(kind), value, np.dtype(f"u{dtype.itemsize}"))
        return store.constant(kind, bits.view(dtype))
    return store.constant(kind, np.full(shape_of(kind), value, dtype))

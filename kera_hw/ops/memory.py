"""Moving tensors between memory spaces."""
from __future__ import annotations

from collections.abc import Sequence

from kera_hw.numerics.arrays import Array
from kera_hw.ops.rules import Types, check_count, fail, tensor_of, title
from kera_hw.ops.spec import Attrs, EvalCall, OpSpec, Trait
from kera_hw.types import TensorType

SPACES = ("device", "host", "pinned", "remote", "unified")


def _infer_transfer(types: Types, attrs: Attrs) -> Types:
    op = "memory.transfer"
    check_count(op, types, 1)
    tensor, space = tensor_of(op, types[0]), attrs["space"]
    if space not in SPACES:
        fail(f"{title(op)} knows the spaces {', '.join(SPACES)}, and `{space}` is none of them.")
    return (TensorType(tensor.element, tensor.shape, space),)


def _transfer(call: EvalCall) -> Sequence[Array]:
    return call.args


TABLE: tuple[OpSpec, ...] = (
    OpSpec(
        "memory.transfer", "The same tensor in another memory space.",
        _infer_transfer, _transfer, frozenset({Trait.STRUCTURAL}), attrs=("space",),
    ),
)

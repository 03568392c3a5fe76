"""Effects, ordered by tokens; the reference evaluator refuses them until their runtime exists."""
from __future__ import annotations

from kera_hw.ops.rules import Types, check_leaf, check_least, fail, refuse, title
from kera_hw.ops.spec import Attrs, OpSpec
from kera_hw.types import TokenType, Type


def _infer_print(types: Types, attrs: Attrs) -> Types:
    op = "effect.print"
    check_least(op, types, 1)
    token = types[0]
    if not (isinstance(token, TokenType) and token.effect == "io"):
        fail(f"{title(op)} takes a token of `io` first, but got {token}.")
    for kind in types[1:]:
        check_leaf(op, kind)
    return (token,)


def _always(types: Types, results: Types) -> Type | None:
    return types[0]


TABLE: tuple[OpSpec, ...] = (
    OpSpec(
        "effect.print", "Writes a labelled value in the order its token gives.",
        _infer_print, refuse("effect.print"), attrs=("label",), effect="io", unsupported=_always,
    ),
)

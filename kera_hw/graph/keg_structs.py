"""The `.keg` section of struct names, in the types of parameters and results; identity ignores it."""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from kera_hw.graph.keg_format import Cursor
from kera_hw.graph.node import Export, Graph
from kera_hw.support import Encoder
from kera_hw.types import StructType, TensorType, TupleType, Type

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
"""Names go into Verilog and Python: what is no name in source is refused."""


def write_struct_names(graph: Graph) -> bytes:
    out = Encoder()
    for export in graph.exports:
        for kind in _ports(export):
            for name in _names(kind):
                out.text(name)
    return out.finish()


def with_struct_names(graph: Graph, cursor: Cursor) -> Graph:
    """The graph with the names that the section gives; raises Malformed where it is none for this graph."""
    exports: list[Export] = []
    for export in graph.exports:
        params = tuple((name, _named(kind, cursor)) for name, kind in export.params)
        exports.append(replace(export, params=params, result=_named(export.result, cursor)))
    cursor.finish()
    return Graph(exports, graph.origins, graph.scopes)


def _ports(export: Export) -> Iterator[Type]:
    yield from (kind for _, kind in export.params)
    yield export.result


def _names(kind: Type) -> Iterator[str]:
    """A struct before those in its fields."""
    if isinstance(kind, StructType):
        yield kind.name
        for _, field in kind.fields:
            yield from _names(field)
    elif isinstance(kind, TupleType):
        for item in kind.items:
            yield from _names(item)
    elif isinstance(kind, TensorType):
        yield from _names(kind.element)


def _named(kind: Type, cursor: Cursor) -> Type:
    if isinstance(kind, StructType):
        name = cursor.text()
        if _NAME.fullmatch(name) is None:
            raise cursor.fail(f"{name!r} is no name of a struct.")
        return StructType(name, tuple((field, _named(inner, cursor)) for field, inner in kind.fields))
    if isinstance(kind, TupleType):
        return replace(kind, items=tuple(_named(item, cursor) for item in kind.items))
    if isinstance(kind, TensorType):
        return replace(kind, element=_named(kind.element, cursor))
    return kind

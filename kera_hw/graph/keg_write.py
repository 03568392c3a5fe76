"""Canonical `.keg` writing: equal graphs give equal bytes once what identity ignores is left out."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kera_hw.graph.keg_format import (
    ATTRIBUTES,
    DEBUG,
    EXPORTS,
    KINDS,
    NODES,
    PLACES,
    REGIONS,
    STRINGS,
    STRUCTS,
    TYPES,
    Section,
    write_container,
)
from kera_hw.graph.keg_structs import write_struct_names
from kera_hw.graph.node import Graph, Node, Origin, Region, regions_of
from kera_hw.ops.spec import AttrValue, encode_attr
from kera_hw.support import Encoder, toposort
from kera_hw.types import Type

_T = TypeVar("_T")


def attr_bytes(value: AttrValue) -> bytes:
    """An attribute's canonical encoding, as the node hash takes it."""
    out = Encoder()
    encode_attr(out, value)
    return out.finish()


def type_bytes(kind: Type) -> bytes:
    """A type's canonical encoding, as the type hash takes it."""
    out = Encoder()
    kind.encode(out)
    return out.finish()


def collect_regions(graph: Graph) -> list[Region]:
    """Every region reachable from the exports, callees before callers, each once by hash."""
    unique: dict[bytes, Region] = {}

    def callees(region: Region) -> list[Region]:
        found = (callee for node in region.nodes() for callee in regions_of(node))
        return [unique.setdefault(callee.hash, callee) for callee in found]

    roots = [unique.setdefault(item.region.hash, item.region) for item in graph.exports]
    return toposort(roots, callees)


def node_depths(nodes: Iterable[Node]) -> dict[bytes, int]:
    """Depth from the leaves by node hash; ``nodes`` come in topological order."""
    depths: dict[bytes, int] = {}
    for node in nodes:
        depths[node.hash] = max((depths[ref.node.hash] + 1 for ref in node.inputs), default=0)
    return depths


class _Tables:
    """The sorted, duplicate-free entry tables and the index of each entry."""

    def __init__(self, graph: Graph) -> None:
        self.regions = sorted(collect_regions(graph), key=lambda region: region.hash)
        nodes: dict[bytes, Node] = {}
        for region in self.regions:
            for node in region.nodes():
                nodes.setdefault(node.hash, node)
        for export in graph.exports:
            for var in export.state:
                nodes.setdefault(var.initial.node.hash, var.initial.node)
        depths = node_depths(toposort(nodes.values(), lambda n: (nodes[r.node.hash] for r in n.inputs)))
        self.nodes = sorted(nodes.values(), key=lambda node: (depths[node.hash], node.hash))
        strings: set[str] = set()
        types: set[bytes] = set()
        attrs: set[bytes] = set()
        for node in self.nodes:
            strings.add(node.opcode)
            types.update(type_bytes(kind) for kind in node.types)
            for key, value in node.attrs:
                strings.add(key)
                attrs.add(attr_bytes(value))
                types.update(type_bytes(kind) for kind in _types_in(value))
        for region in self.regions:
            types.update(type_bytes(kind) for kind in region.params)
        for export in graph.exports:
            strings.update((export.name, *(name for name, _ in export.params), *export.effects))
            types.update(type_bytes(kind) for _, kind in export.params)
            types.add(type_bytes(export.result))
        self.strings = sorted(strings, key=str.encode)
        self.types = sorted(types)
        self.attrs = sorted(attrs)
        self.string_index = {text: i for i, text in enumerate(self.strings)}
        self.type_index = {data: i for i, data in enumerate(self.types)}
        self.attr_index = {data: i for i, data in enumerate(self.attrs)}
        self.node_index = {node.hash: i for i, node in enumerate(self.nodes)}
        self.region_index = {region.hash: i for i, region in enumerate(self.regions)}

    def type(self, kind: Type) -> int:
        return self.type_index[type_bytes(kind)]


def _types_in(value: object) -> list[Type]:
    if isinstance(value, Type):
        return [value]
    if isinstance(value, tuple):
        return [kind for item in value for kind in _types_in(item)]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return []


def write_keg(graph: Graph, debug: bool = True) -> bytes:
    """The file's bytes. ``debug`` adds names and spans, which identity ignores."""
    tables = _Tables(graph)
    sections = [
        Section(STRINGS, _table(tables.strings, lambda out, text: out.text(text))),
        Section(TYPES, _table(tables.types, lambda out, data: out.bytes(data))),
        Section(ATTRIBUTES, _table(tables.attrs, lambda out, data: out.bytes(data))),
        Section(NODES, _table(tables.nodes, lambda out, node: _node(out, node, tables))),
        Section(REGIONS, _table(tables.regions, lambda out, region: _region(out, region, tables))),
        Section(EXPORTS, _exports(graph, tables)),
    ]
    if debug:
        sections.append(Section(DEBUG, _debug(graph, tables)))
        sections.append(Section(PLACES, _places(graph, tables)))
        sections.append(Section(STRUCTS, write_struct_names(graph)))
    return write_container(sections)


def _table(entries: Sequence[_T], write: Callable[[Encoder, _T], object]) -> bytes:
    out = Encoder().uint(len(entries))
    for entry in entries:
        write(out, entry)
    return out.finish()


def _node(out: Encoder, node: Node, tables: _Tables) -> None:
    out.uint(tables.string_index[node.opcode]).uint(len(node.types))
    for kind in node.types:
        out.uint(tables.type(kind))
    out.uint(len(node.inputs))
    for ref in node.inputs:
        out.uint(tables.node_index[ref.node.hash]).uint(ref.index)
    out.uint(len(node.attrs))
    for key, value in node.attrs:
        out.uint(tables.string_index[key]).uint(tables.attr_index[attr_bytes(value)])


def _region(out: Encoder, region: Region, tables: _Tables) -> None:
    out.uint(len(region.params))
    for kind in region.params:
        out.uint(tables.type(kind))
    out.uint(len(region.results))
    for ref in region.results:
        out.uint(tables.node_index[ref.node.hash]).uint(ref.index)


def _exports(graph: Graph, tables: _Tables) -> bytes:
    out = Encoder().uint(len(graph.exports))
    for export in graph.exports:
        out.uint(tables.string_index[export.name]).uint(KINDS.index(export.kind)).uint(len(export.params))
        for name, kind in export.params:
            out.uint(tables.string_index[name]).uint(tables.type(kind))
        out.uint(tables.type(export.result)).uint(tables.region_index[export.region.hash])
        out.uint(len(export.state))
        for var in export.state:
            out.uint(tables.node_index[var.initial.node.hash]).uint(var.initial.index)
        out.uint(len(export.effects))
        for effect in export.effects:
            out.uint(tables.string_index[effect])
    return out.finish()


def _debug(graph: Graph, tables: _Tables) -> bytes:
    """State names per export, then an origin per node that has one."""
    out = Encoder()
    for export in graph.exports:
        for var in export.state:
            out.text(var.name)
    found = [
        (i, graph.origins[node]) for i, node in enumerate(tables.nodes) if node in graph.origins
    ]
    paths = sorted({origin.path for _, origin in found})
    index = {path: i for i, path in enumerate(paths)}
    out.uint(len(paths))
    for path in paths:
        out.text(path)
    out.uint(len(found))
    for i, origin in found:
        out.uint(i).uint(index[origin.path]).uint(origin.span.start).uint(origin.span.end)
        out.uint(origin.line).text(origin.name or "")
    return out.finish()


def _places(graph: Graph, tables: _Tables) -> bytes:
    """Further places of nodes, scopes of regions, and where parameters and states are declared."""
    nodes = [
        (i, graph.origins[node].others) for i, node in enumerate(tables.nodes)
        if node in graph.origins and graph.origins[node].others
    ]
    regions = [(i, graph.scopes[region]) for i, region in enumerate(tables.regions) if region in graph.scopes]
    exports = [
        ports for export in graph.exports
        for ports in (export.places, *(() if var.origin is None else (var.origin,) for var in export.state))
    ]
    every = [*(of for _, of in nodes), *(of for _, of in regions), *exports]
    paths = sorted({place.path for of in every for place in of})
    index = {path: i for i, path in enumerate(paths)}
    out = Encoder().uint(len(paths))
    for path in paths:
        out.text(path)

    def write(of: Sequence[Origin]) -> None:
        out.uint(len(of))
        for place in of:
            out.uint(index[place.path]).uint(place.span.start).uint(place.span.end).uint(place.line)

    for rows in (nodes, regions):
        out.uint(len(rows))
        for i, of in rows:
            out.uint(i)
            write(of)
    for of in exports:
        write(of)
    return out.finish()

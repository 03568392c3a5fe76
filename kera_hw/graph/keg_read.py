"""Reading `.keg` files from anybody: every byte is checked, nothing is trusted.

A file is accepted only if it is the canonical encoding of the graph it holds: sorted tables without
duplicates or unused entries, nodes by (depth, hash), every reference backwards, every node's types equal to
what the registry's typing rule gives. Memory is bounded by a small multiple of the file's size.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

from kera_hw.graph.keg_format import (
    ATTRIBUTES,
    DEBUG,
    EXPORTS,
    KINDS,
    MAX_TENSOR_SIZE,
    MAX_TYPE_DEPTH,
    NO_IDENTITY,
    NODES,
    PLACES,
    REGIONS,
    STRINGS,
    STRUCTS,
    TYPES,
    Cursor,
    Malformed,
    Section,
    read_container,
    write_container,
)
from kera_hw.graph.keg_structs import with_struct_names
from kera_hw.graph.keg_write import write_keg
from kera_hw.graph.node import Export, Graph, Node, Origin, Ref, Region, StateVar
from kera_hw.graph.verifier import verify_graph
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import AttrValue
from kera_hw.support import Diagnostic, SourceFile, Span
from kera_hw.types import (
    BF16,
    F16,
    F32,
    F64,
    BoolType,
    FixType,
    IntType,
    StructType,
    TensorType,
    TokenType,
    TupleType,
    Type,
)

_FLOATS = {(k.exponent_bits, k.fraction_bits): k for k in (F16, BF16, F32, F64)}
SPACES = ("host", "device", "pinned", "unified", "remote")


def read_keg(data: bytes, path: str = "<keg>") -> tuple[Graph | None, list[Diagnostic]]:
    """The graph, or a K08xx diagnostic that says what is wrong with the file."""
    try:
        return _Reader(data).graph(), []
    except Malformed as fault:
        return None, [Diagnostic(fault.code, str(fault), SourceFile(path, b""))]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.sections = read_container(data)
        self.strings = self._strings()
        self.types = self._types()
        self.type_by_hash = {kind.hash: kind for kind in self.types}

    def cursor(self, kind: int, name: str) -> Cursor:
        return Cursor(self.sections[kind], name)

    def _strings(self) -> list[str]:
        cursor = self.cursor(STRINGS, "strings")
        texts = [cursor.text() for _ in range(cursor.count())]
        cursor.finish()
        _sorted([text.encode() for text in texts], "strings")
        return texts

    def _types(self) -> list[Type]:
        cursor = self.cursor(TYPES, "types")
        blobs = [cursor.bytes() for _ in range(cursor.count())]
        cursor.finish()
        _sorted(blobs, "types")
        return [_decode_type(blob) for blob in blobs]

    def graph(self) -> Graph:
        attrs = self._blobs(ATTRIBUTES, "attributes")
        raw_nodes = self._raw_nodes(len(attrs))
        raw_regions = self._raw_regions(len(raw_nodes))
        graph = _Builder(self, attrs, raw_nodes, raw_regions).build()
        problems = verify_graph(graph)
        if problems:
            raise Malformed("K0807", problems[0].message)
        identity = [Section(kind, data) for kind, data in self.sections.items() if kind not in NO_IDENTITY]
        if write_keg(graph, debug=False) != write_container(identity):
            raise Malformed("K0806", "The file is not in canonical form: an entry is unused or out of order.")
        return graph

    def _blobs(self, kind: int, name: str) -> list[bytes]:
        cursor = self.cursor(kind, name)
        blobs = [cursor.bytes() for _ in range(cursor.count())]
        cursor.finish()
        _sorted(blobs, name)
        return blobs

    def _raw_nodes(self, attr_count: int) -> list[_RawNode]:
        cursor = self.cursor(NODES, "nodes")
        nodes: list[_RawNode] = []
        for i in range(cursor.count()):
            opcode = self.strings[cursor.index(len(self.strings), "string")]
            if opcode not in OPS:
                raise Malformed("K0807", f"The operation {opcode!r} is unknown to this version.")
            types = [cursor.index(len(self.types), "type") for _ in range(cursor.count())]
            inputs = [(cursor.index(i, "earlier node"), cursor.uint()) for _ in range(cursor.count())]
            keys: list[tuple[str, int]] = []
            for _ in range(cursor.count()):
                key = self.strings[cursor.index(len(self.strings), "string")]
                keys.append((key, cursor.index(attr_count, "attribute")))
            nodes.append((opcode, types, inputs, keys))
        cursor.finish()
        return nodes

    def _raw_regions(self, node_count: int) -> list[_RawRegion]:
        cursor = self.cursor(REGIONS, "regions")
        regions: list[_RawRegion] = []
        for _ in range(cursor.count()):
            params = [cursor.index(len(self.types), "type") for _ in range(cursor.count())]
            results = [(cursor.index(node_count, "node"), cursor.uint()) for _ in range(cursor.count())]
            regions.append((params, results))
        cursor.finish()
        return regions


_Item = tuple[str, int]  # ("node" or "region", index in its table)
_RawNode = tuple[str, list[int], list[tuple[int, int]], list[tuple[str, int]]]
_RawRegion = tuple[list[int], list[tuple[int, int]]]


class _Builder:
    """Makes node and region objects. A node names regions by hash, and a region's hash is known only once
    its nodes exist, so both are built together in the order their needs allow."""

    def __init__(
        self, reader: _Reader, attrs: list[bytes], nodes: list[_RawNode], regions: list[_RawRegion]
    ) -> None:
        self.reader, self.attrs, self.raw_nodes, self.raw_regions = reader, attrs, nodes, regions
        self.nodes: list[Node | None] = [None] * len(nodes)
        self.regions: list[Region | None] = [None] * len(regions)
        self.region_by_hash: dict[bytes, Region] = {}

    def build(self) -> Graph:
        """Builds each item once all it waits for exists: linear in the size of the file."""
        waiting: dict[_Item, int] = {}
        users: dict[_Item | bytes, list[_Item]] = {}
        ready: list[_Item] = []
        attr_regions = [_region_hashes(Cursor(blob, "attributes"), 0) for blob in self.attrs]
        items: list[tuple[_Item, set[_Item | bytes]]] = []
        for i, (_, _, inputs, keys) in enumerate(self.raw_nodes):
            needs: set[_Item | bytes] = {("node", k) for k, _ in inputs}
            needs.update(digest for _, attr in keys for digest in attr_regions[attr])
            items.append((("node", i), needs))
        for i, (_, results) in enumerate(self.raw_regions):
            items.append((("region", i), {("node", k) for k, _ in results}))
        for item, needs in items:
            waiting[item] = len(needs)
            for need in needs:
                users.setdefault(need, []).append(item)
            if not needs:
                ready.append(item)
        built = 0
        while ready:
            item = ready.pop()
            built += 1
            kind, index = item
            done: list[_Item | bytes] = [item]
            if kind == "node":
                self._make_node(index)
            else:
                done.append(self._make_region(index))
            for user in (user for key in done for user in users.pop(key, ())):
                waiting[user] -= 1
                if waiting[user] == 0:
                    ready.append(user)
        if built != len(items):
            raise Malformed("K0805", "A node refers to a region that the file does not hold.")
        return self._exports()

    def _make_node(self, index: int) -> None:
        opcode, types, inputs, keys = self.raw_nodes[index]
        attrs = tuple(
            (key, _attr_value(Cursor(self.attrs[attr], "attributes"), self)) for key, attr in keys
        )
        if tuple(key for key, _ in attrs) != OPS[opcode].attrs:
            raise Malformed("K0807", f"A node of {opcode} has other attributes than the operation takes.")
        refs = tuple(self._ref(i, out) for i, out in inputs)
        self.nodes[index] = Node(opcode, tuple(self.reader.types[t] for t in types), refs, attrs)

    def _make_region(self, index: int) -> bytes:
        params, results = self.raw_regions[index]
        region = Region(
            tuple(self.reader.types[t] for t in params), tuple(self._ref(i, out) for i, out in results)
        )
        self.regions[index] = region
        known = self.region_by_hash.setdefault(region.hash, region)
        if known is not region:
            raise Malformed("K0806", "The regions section holds one region twice.")
        return region.hash

    def _ref(self, index: int, out: int) -> Ref:
        node = cast(Node, self.nodes[index])
        if out >= len(node.types):
            raise Malformed("K0805", f"Node {index} has no output {out}.")
        return Ref(node, out)

    def _exports(self) -> Graph:
        reader = self.reader
        cursor = reader.cursor(EXPORTS, "exports")

        def string() -> str:
            return reader.strings[cursor.index(len(reader.strings), "string")]

        def kind() -> Type:
            return reader.types[cursor.index(len(reader.types), "type")]

        exports: list[Export] = []
        for _ in range(cursor.count()):
            name = string()
            flavour = KINDS[cursor.index(len(KINDS), "export kind")]
            params = tuple((string(), kind()) for _ in range(cursor.count()))
            result = kind()
            region = cast(Region, self.regions[cursor.index(len(self.regions), "region")])
            state = tuple(
                StateVar(f"state{i}", self._ref(cursor.index(len(self.nodes), "node"), cursor.uint()))
                for i in range(cursor.count())
            )
            effects = tuple(string() for _ in range(cursor.count()))
            exports.append(Export(name, flavour, params, result, region, state, effects))
        cursor.finish()
        names = [export.name.encode() for export in exports]
        _sorted(names, "exports")
        graph = Graph(exports) if DEBUG not in reader.sections else self._with_debug(exports)
        if STRUCTS not in reader.sections:
            return graph
        return with_struct_names(graph, reader.cursor(STRUCTS, "structs"))

    def _with_debug(self, exports: Sequence[Export]) -> Graph:
        cursor = self.reader.cursor(DEBUG, "debug")
        named = [
            Export(e.name, e.kind, e.params, e.result, e.region,
                   tuple(StateVar(cursor.text(), var.initial) for var in e.state), e.effects)
            for e in exports
        ]
        paths = [cursor.text() for _ in range(cursor.count())]
        origins: dict[Node, Origin] = {}
        for _ in range(cursor.count()):
            node = cast(Node, self.nodes[cursor.index(len(self.nodes), "node")])
            path = paths[cursor.index(len(paths), "path")]
            span = Span(cursor.uint(), cursor.uint())
            origins[node] = Origin(path, span, cursor.uint(), cursor.text() or None)
        cursor.finish()
        graph = Graph(named, origins)
        return graph if PLACES not in self.reader.sections else self._with_places(graph)

    def _with_places(self, graph: Graph) -> Graph:
        cursor = self.reader.cursor(PLACES, "places")
        paths = [cursor.text() for _ in range(cursor.count())]

        def places() -> tuple[Origin, ...]:
            return tuple(place() for _ in range(cursor.count()))

        def place() -> Origin:
            path = paths[cursor.index(len(paths), "path")]
            return Origin(path, Span(cursor.uint(), cursor.uint()), cursor.uint())

        origins, scopes = dict(graph.origins), dict(graph.scopes)
        for _ in range(cursor.count()):
            node = cast(Node, self.nodes[cursor.index(len(self.nodes), "node")])
            others = places()
            if node not in origins:
                raise cursor.fail("A node has further places and no first one.")
            origins[node] = replace(origins[node], others=others)
        for _ in range(cursor.count()):
            region = cast(Region, self.regions[cursor.index(len(self.regions), "region")])
            scopes[region] = places()
        exports: list[Export] = []
        for export in graph.exports:
            declared = places()
            state = tuple(replace(var, origin=next(iter(places()), None)) for var in export.state)
            exports.append(replace(export, places=declared, state=state))
        cursor.finish()
        return Graph(exports, origins, scopes)


def _sorted(entries: Sequence[bytes], where: str) -> None:
    if any(a >= b for a, b in pairwise(entries)):
        raise Malformed("K0806", f"The {where} section is not sorted without duplicates.")


def _region_hashes(cursor: Cursor, depth: int) -> list[bytes]:
    """Checks one attribute's encoding and lists the regions it names."""
    tag = cursor.raw(1)
    if depth > MAX_TYPE_DEPTH:
        raise cursor.fail("an attribute nests too deeply.")
    found: list[bytes] = []
    if tag == b"i":
        cursor.uint()
    elif tag == b"s":
        cursor.text()
    elif tag == b"y":
        cursor.bytes()
    elif tag == b"t":
        cursor.raw(32)
    elif tag == b"r":
        found.append(cursor.raw(32))
    elif tag == b"(":
        for _ in range(cursor.count()):
            found += _region_hashes(cursor, depth + 1)
    elif tag not in (b"T", b"F"):
        raise cursor.fail("an attribute has an unknown tag.")
    if depth == 0:
        cursor.finish()
    return found


def _attr_value(cursor: Cursor, builder: _Builder) -> AttrValue:
    """The value of an attribute whose encoding ``_region_hashes`` has checked."""
    tag = cursor.raw(1)
    if tag in (b"T", b"F"):
        return tag == b"T"
    if tag == b"i":
        value = cursor.uint()
        return value >> 1 if value % 2 == 0 else -(value + 1 >> 1)
    if tag == b"s":
        return cursor.text()
    if tag == b"y":
        return cursor.bytes()
    if tag == b"t":
        kind = builder.reader.type_by_hash.get(cursor.raw(32))
        if kind is None:
            raise cursor.fail("an attribute names a type that the file does not hold.")
        return kind
    if tag == b"r":
        return builder.region_by_hash[cursor.raw(32)]
    return tuple(_attr_value(cursor, builder) for _ in range(cursor.count()))


def _decode_type(blob: bytes) -> Type:
    cursor = Cursor(blob, "types")
    kind = _type_value(cursor, 0)
    cursor.finish()
    return kind


def _type_value(cursor: Cursor, depth: int) -> Type:
    if depth > MAX_TYPE_DEPTH:
        raise cursor.fail("a type nests too deeply.")
    tag = cursor.raw(1)
    if tag == b"b":
        return BoolType()
    if tag in b"iu":
        width = cursor.uint()
        if not 1 <= width <= 64:
            raise cursor.fail("an integer type is not 1 to 64 bits wide.")
        return IntType(width, tag == b"i")
    if tag in b"xy":
        width, fraction = cursor.uint(), cursor.uint()
        if not 1 <= width <= 64 or fraction > width:
            raise cursor.fail("a fixed-point type has impossible widths.")
        return FixType(width, fraction, tag == b"x")
    if tag == b"f":
        found = _FLOATS.get((cursor.uint(), cursor.uint()))
        if found is None:
            raise cursor.fail("a floating-point format is unknown.")
        return found
    if tag == b"t":
        return _tensor_type(cursor, depth)
    if tag == b"(":
        return TupleType(tuple(_type_value(cursor, depth + 1) for _ in range(cursor.count())))
    if tag == b"s":
        fields = ((cursor.text(), _type_value(cursor, depth + 1)) for _ in range(cursor.count()))
        return StructType("struct", tuple(fields))
    if tag == b"k":
        return TokenType(cursor.text())
    raise cursor.fail("a type has an unknown tag.")


def _tensor_type(cursor: Cursor, depth: int) -> Type:
    element = _type_value(cursor, depth + 1)
    shape = tuple(cursor.uint() for _ in range(cursor.count()))
    space = cursor.text()
    if not shape or isinstance(element, (TensorType, TokenType)) or space not in SPACES:
        raise cursor.fail("a tensor type is not in normal form.")
    size = 1
    for extent in shape:
        size *= max(extent, 1)
    if size > MAX_TENSOR_SIZE:
        raise cursor.fail("a tensor type has more elements than any machine holds.")
    return TensorType(element, shape, space)

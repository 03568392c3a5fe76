"""Graphs as text: one line a node, regions indented where they are held; stable across runs."""
from __future__ import annotations

from kera_hw.graph.node import Graph, Node, Origin, Region, Scopes, within
from kera_hw.ops.core import decode_constant
from kera_hw.ops.spec import AttrValue
from kera_hw.types import Type, shape_of

_MAX_ELEMENTS = 8


def print_graph(graph: Graph, hashes: bool = False) -> str:
    """All exports: header, regions once each by short hash, origins as trailing comments.

    With ``hashes`` each node's line begins with its short hash.
    """
    lines = [f"graph {graph.fingerprint}"]
    printed: set[bytes] = set()
    for export in graph.exports:
        params = ", ".join(f"{name}: {kind}" for name, kind in export.params)
        lines += ["", f"pub {export.kind} {export.name}({params}) -> {export.result}"]
        for var in export.state:
            lines.append(f"  state {var.name}: {var.initial.type} = {_constant(var.initial.node)}")
        _region(export.region, "  ", lines, printed, graph, (), hashes)
    return "\n".join(lines) + "\n"


def short_hash(digest: bytes) -> str:
    """First eight hex digits, for people."""
    return digest.hex()[:8]


def _region(
    region: Region, indent: str, lines: list[str], printed: set[bytes], graph: Graph, around: Scopes,
    hashes: bool = False,
) -> None:
    head = f"{indent}region @{short_hash(region.hash)} ({', '.join(map(str, region.params))})"
    if region.hash in printed:
        lines.append(head + " as above")
        return
    printed.add(region.hash)
    lines.append(head)
    names: dict[Node, str] = {}
    scopes = around + graph.scopes.get(region, ())
    for node in region.nodes():
        names[node] = f"%{len(names)}" if node.opcode != "core.param" else f"p{node.attr('index')}"
        if node.opcode == "core.param":
            continue
        mark = f"{short_hash(node.hash)}  " if hashes else ""
        lines.append(f"{indent}  {mark}{_node(node, names, within(graph.origins.get(node), scopes))}")
        for _, value in node.attrs:
            for held in _held(value):
                _region(held, indent + "    ", lines, printed, graph, scopes, hashes)
    results = ", ".join(_ref_name(names[ref.node], ref.index, ref.node) for ref in region.results)
    lines.append(f"{indent}  give {results}")


def _node(node: Node, names: dict[Node, str], origin: Origin | None) -> str:
    operands = ", ".join(_ref_name(names[ref.node], ref.index, ref.node) for ref in node.inputs)
    types = ", ".join(map(str, node.types))
    if node.opcode == "core.constant":
        text = f"{names[node]}: {types} = {_constant(node)}"
    else:
        attrs = ", ".join(f"{key}={_attr(value)}" for key, value in node.attrs)
        text = f"{names[node]}: {types} = {node.opcode}{f'[{attrs}]' if attrs else ''}({operands})"
    if origin is not None:
        text += f"  // {f'{origin.name} ' if origin.name else ''}{origin.lines}"
    return text


def _ref_name(name: str, index: int, node: Node) -> str:
    return name if len(node.types) == 1 else f"{name}.{index}"


def _held(value: AttrValue) -> list[Region]:
    if isinstance(value, Region):
        return [value]
    return [region for item in value for region in _held(item)] if isinstance(value, tuple) else []


def _attr(value: AttrValue) -> str:
    if isinstance(value, Region):
        return "@" + short_hash(value.hash)
    if isinstance(value, tuple):
        return "(" + ", ".join(_attr(item) for item in value) + ")"
    return str(value)


def _constant(node: Node) -> str:
    kind, data = node.attr("type"), node.attr("value")
    assert isinstance(kind, Type) and isinstance(data, bytes)
    values = decode_constant(kind, data).ravel()
    if shape_of(kind) == ():
        return str(values[0])
    shown = ", ".join(str(v) for v in values[:_MAX_ELEMENTS])
    return f"[{shown}{', ...' if values.size > _MAX_ELEMENTS else ''}]"

"""Graphs as pictures and as JSON: nodes in layers by depth, edges downwards, regions beside their holder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, cast

from kera_hw.graph import Graph, Node, Region, regions_of, short_hash
from kera_hw.graph.keg_write import collect_regions

_BOX_WIDTH, _BOX_HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 150, 34, 14, 30, 20
# Larger pictures help nobody; the rest is counted in a caption.
_MAX_NODES = 400
_SWEEPS = 4

# Families of operations, in the colours of the report's theme.
_FAMILY_COLOUR = {
    "core": "input",
    "integer": "add",
    "fixed": "add",
    "floating": "add",
    "bits": "logic",
    "compare": "mul",
    "convert": "wire",
    "tensor": "table",
    "reduce": "table",
    "control": "mux",
    "memory": "state",
    "effect": "state",
    "neural": "logic",
}


@dataclass(frozen=True, slots=True)
class _Drawing:
    body: str
    width: int
    height: int


def graph_svg(graph: Graph) -> str:
    """An SVG of all regions: exports first, then the regions they hold, under each other.

    Its colours come from the report's style, which ``report.theme.standalone`` puts into a file of its own.
    """
    titles = {export.region.hash: f"{export.kind} {export.name}" for export in graph.exports}
    regions = sorted(collect_regions(graph), key=lambda region: region.hash not in titles)
    parts: list[str] = []
    width, top = 400, _MARGIN
    for region in regions:
        title = titles.get(region.hash, f"region @{short_hash(region.hash)}")
        drawing = _draw_region(region, title, graph)
        parts.append(f'<g transform="translate(0,{top})">{drawing.body}</g>')
        width, top = max(width, drawing.width), top + drawing.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" height="{top}" '
        f'role="img" aria-label="graph"><title>{escape(graph.fingerprint)}</title>{"".join(parts)}</svg>\n'
    )


def _draw_region(region: Region, title: str, graph: Graph) -> _Drawing:
    nodes = region.nodes()
    shown = [node for node in nodes if node.opcode != "core.constant"][:_MAX_NODES]
    layers = _layers(shown)
    place: dict[Node, tuple[int, int]] = {}
    widest = max((len(layer) for layer in layers), default=1)
    for depth, layer in enumerate(layers):
        indent = (widest - len(layer)) * (_BOX_WIDTH + _GAP_X) // 2
        for column, node in enumerate(layer):
            x = _MARGIN + indent + column * (_BOX_WIDTH + _GAP_X)
            place[node] = (x, 24 + depth * (_BOX_HEIGHT + _GAP_Y))
    results = {ref.node for ref in region.results}
    edges = [
        _edge(place[ref.node], place[node]) for node in shown for ref in node.inputs if ref.node in place
    ]
    boxes = [_box(node, place[node], node in results, graph) for node in shown]
    hidden = sum(node.opcode != "core.constant" for node in nodes) - len(shown)
    caption = f"{title}{f' (and {hidden} more nodes)' if hidden else ''}"
    head = f'<text class="head" x="{_MARGIN}" y="12">{escape(caption)}</text>'
    width = 2 * _MARGIN + widest * (_BOX_WIDTH + _GAP_X)
    return _Drawing(head + "".join(edges) + "".join(boxes), width, 40 + len(layers) * (_BOX_HEIGHT + _GAP_Y))


def _layers(nodes: Sequence[Node]) -> list[list[Node]]:
    """Layers by longest path from the leaves, ordered by barycentre sweeps (Sugiyama)."""
    depth: dict[Node, int] = {}
    for node in nodes:
        depth[node] = max((depth[r.node] + 1 for r in node.inputs if r.node in depth), default=0)
    layers: list[list[Node]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for node in nodes:
        layers[depth[node]].append(node)
    position = {node: float(i) for layer in layers for i, node in enumerate(layer)}
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for ref in node.inputs:
            users.setdefault(ref.node, []).append(node)
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):

            def centre(node: Node, down: bool = sweep % 2 == 0) -> float:
                around = [r.node for r in node.inputs] if down else users.get(node, [])
                known = [position[n] for n in around if n in position]
                return sum(known) / len(known) if known else position[node]

            layer.sort(key=centre)
            position.update({node: float(i) for i, node in enumerate(layer)})
    return layers


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    x0, y0 = start[0] + _BOX_WIDTH // 2, start[1] + _BOX_HEIGHT
    x1, y1 = end[0] + _BOX_WIDTH // 2, end[1]
    bend = (y1 - y0) // 2
    return f'<path class="wire" d="M{x0} {y0}C{x0} {y0 + bend} {x1} {y1 - bend} {x1} {y1}"/>'


def _box(node: Node, place: tuple[int, int], result: bool, graph: Graph) -> str:
    x, y = place
    family = node.opcode.split(".")[0]
    origin = graph.origins.get(node)
    label = f"parameter {node.attr('index')}" if node.opcode == "core.param" else node.opcode
    held = [short_hash(region.hash) for region in regions_of(node)]
    detail = ", ".join(map(str, node.types)) + (f" @{held[0]}" if held else "")
    hint = f"{node.opcode} {short_hash(node.hash)}" + (f", {origin.lines}" if origin else "")
    colour = _FAMILY_COLOUR.get(family, "wire")
    return (
        f'<g><title>{escape(hint)}</title><rect x="{x}" y="{y}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" '
        f'rx="5" style="fill:var(--card)" class="box{" result" if result else ""}"/>'
        f'<rect x="{x}" y="{y + 3}" width="4" height="{_BOX_HEIGHT - 6}" rx="2" '
        f'style="fill:var(--{colour})"/>'
        f'<text x="{x + 11}" y="{y + 14}">{escape(label)}</text>'
        f'<text class="faint small" x="{x + 11}" y="{y + 27}">{escape(_clip(detail))}</text></g>'
    )


def _clip(text: str) -> str:
    """What fits into a box."""
    return text if len(text) <= 24 else text[:23] + "…"


def graph_json(graph: Graph) -> dict[str, Any]:
    """Exports and regions as plain data; nodes are named by their hashes."""
    return {
        "exports": [
            {
                "name": e.name,
                "kind": e.kind,
                "region": e.region.hash.hex(),
                "result": str(e.result),
                "params": [{"name": name, "type": str(kind)} for name, kind in e.params],
                "state": [{"name": var.name, "type": str(var.initial.type)} for var in e.state],
            }
            for e in graph.exports
        ],
        "regions": [_region_json(region, graph) for region in collect_regions(graph)],
    }


def _region_json(region: Region, graph: Graph) -> dict[str, Any]:
    return {
        "hash": region.hash.hex(),
        "params": [str(kind) for kind in region.params],
        "results": [[ref.node.hash.hex(), ref.index] for ref in region.results],
        "nodes": [
            {
                "hash": node.hash.hex(),
                "op": node.opcode,
                "types": [str(kind) for kind in node.types],
                "inputs": [[ref.node.hash.hex(), ref.index] for ref in node.inputs],
                "attrs": {key: _attr_json(value) for key, value in node.attrs},
                "line": graph.origins[node].line if node in graph.origins else None,
            }
            for node in region.nodes()
        ],
    }


def _attr_json(value: object) -> Any:
    if isinstance(value, Region):
        return {"region": value.hash.hex()}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [_attr_json(item) for item in cast("tuple[object, ...]", value)]
    return value if isinstance(value, (int, str)) else str(value)

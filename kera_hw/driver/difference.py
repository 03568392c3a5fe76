"""What changed between two graphs: nodes by content hash, the edits at the roots of the change, and who
depends on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kera_hw.graph import Graph, Node, Origin, regions_of, short_hash
from kera_hw.graph.keg_write import collect_regions


@dataclass(frozen=True, slots=True)
class Change:
    """A node on one side only; ``edited`` when its inputs and regions are all common to both sides."""

    node: Node
    origin: Origin | None
    edited: bool

    def text(self, sign: str) -> str:
        place = f"  // line {self.origin.line}" if self.origin else ""
        return f"{sign} {short_hash(self.node.hash)} {_describe(self.node)}{place}"


@dataclass(frozen=True, slots=True)
class Difference:
    """``removed`` and ``added`` list the nodes of one side only; ``common`` counts those of both."""

    before: str
    after: str
    exports_removed: tuple[str, ...]
    exports_added: tuple[str, ...]
    exports_changed: tuple[str, ...]
    exports_kept: tuple[str, ...]
    removed: tuple[Change, ...]
    added: tuple[Change, ...]
    common: int

    @property
    def equal(self) -> bool:
        return self.before == self.after

    def text(self) -> str:
        """For people: exports, the edits themselves, then how many nodes were re-keyed because of them."""
        if self.equal:
            return f"equal: {self.before}"
        lines = [f"- {self.before}", f"+ {self.after}"]
        for sign, names in (
            ("-", self.exports_removed),
            ("+", self.exports_added),
            ("~", self.exports_changed),
        ):
            lines += [f"{sign} export {name}" for name in names]
        lines += [f"= export {name} (unchanged)" for name in self.exports_kept]
        lines += [change.text("-") for change in self.removed if change.edited]
        lines += [change.text("+") for change in self.added if change.edited]
        dependants = sum(not change.edited for change in self.added)
        lines.append(f"{self.common} nodes kept, {dependants} re-keyed because they depend on an edit")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        def rows(changes: Iterable[Change]) -> list[dict[str, Any]]:
            return [
                {
                    "hash": c.node.hash.hex(),
                    "node": _describe(c.node),
                    "edited": c.edited,
                    "line": c.origin.line if c.origin else None,
                }
                for c in changes
            ]

        return {
            "equal": self.equal,
            "before": self.before,
            "after": self.after,
            "exports": {
                "removed": self.exports_removed,
                "added": self.exports_added,
                "changed": self.exports_changed,
                "kept": self.exports_kept,
            },
            "removed": rows(self.removed),
            "added": rows(self.added),
            "common": self.common,
        }


def compare_graphs(before: Graph, after: Graph) -> Difference:
    """The difference by content; names and spans play no part."""
    old, new = _nodes(before), _nodes(after)
    old_regions = {region.hash for region in collect_regions(before)}
    new_regions = {region.hash for region in collect_regions(after)}
    regions = old_regions & new_regions
    old_exports = {e.name: e.region.hash for e in before.exports}
    new_exports = {e.name: e.region.hash for e in after.exports}
    shared = [name for name in old_exports if name in new_exports]
    kept = tuple(name for name in shared if old_exports[name] == new_exports[name])
    return Difference(
        before.fingerprint,
        after.fingerprint,
        tuple(name for name in old_exports if name not in new_exports),
        tuple(name for name in new_exports if name not in old_exports),
        tuple(name for name in shared if name not in kept),
        kept,
        tuple(_change(node, before, new, regions) for digest, node in old.items() if digest not in new),
        tuple(_change(node, after, old, regions) for digest, node in new.items() if digest not in old),
        len(old.keys() & new.keys()),
    )


def _nodes(graph: Graph) -> dict[bytes, Node]:
    return {node.hash: node for region in collect_regions(graph) for node in region.nodes()}


def _change(node: Node, graph: Graph, other: dict[bytes, Node], regions: set[bytes]) -> Change:
    edited = all(ref.node.hash in other for ref in node.inputs)
    edited = edited and all(region.hash in regions for region in regions_of(node))
    return Change(node, graph.origins.get(node), edited)


def _describe(node: Node) -> str:
    shown = [f"{key}={value}" for key, value in node.attrs if isinstance(value, (int, str))]
    if node.opcode == "core.constant":
        data = node.attr("value")
        assert isinstance(data, bytes)
        shown = [f"value=0x{data[::-1].hex()}" if len(data) <= 16 else f"value of {len(data)} bytes"]
    return f"{node.opcode}[{', '.join(shown)}]: {', '.join(map(str, node.types))}"

"""Bounds on how deep trees get."""
from __future__ import annotations

from kera_hw.frontend.syntax.green import GreenElement, GreenNode, GreenToken
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Diagnostic, SourceFile, Span

#: Largest depth, in nodes, of any tree the parser gives; long operator chains count as depth.
MAX_TREE_DEPTH = 1500


def limit_depth(root: GreenNode, file: SourceFile) -> tuple[GreenNode, list[Diagnostic]]:
    """The tree with every item that is too deep replaced by a flat ERROR, and a report of each."""
    children: list[GreenElement] = []
    diagnostics: list[Diagnostic] = []
    start = 0
    for child in root.children:
        if isinstance(child, GreenNode) and _depth(child) > MAX_TREE_DEPTH:
            leaves = tuple(child.leaves())
            children.append(GreenNode(SyntaxKind.ERROR, leaves))
            diagnostics.append(_too_deep(leaves, start, file))
        else:
            children.append(child)
        start += child.width_bytes
    return (GreenNode(root.kind, tuple(children)) if diagnostics else root), diagnostics


def _depth(node: GreenNode) -> int:
    """Levels of nodes, breadth first so that no recursion is needed."""
    depth = 0
    level: list[GreenNode] = [node]
    while level:
        depth += 1
        level = [
            child for parent in level for child in parent.children if isinstance(child, GreenNode)
        ]
    return depth


def _too_deep(leaves: tuple[GreenToken, ...], start: int, file: SourceFile) -> Diagnostic:
    for leaf in leaves:
        if not leaf.kind.is_trivia:
            break
        start += leaf.width_bytes
    message = f"The expressions of this item are more than {MAX_TREE_DEPTH} levels deep."
    return Diagnostic("K0103", message, file, Span(start, start + 1))

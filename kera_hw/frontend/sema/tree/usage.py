"""Which names a program declares, and which of them it reads, writes and reaches: what lints are told from.

Names are known by where they are declared, so that all instances of a generic function count together.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kera_hw.support import Diagnostic, SourceFile, Span

#: A declaration: path of its file, and the span of the name.
Place = tuple[str, Span]


@dataclass(frozen=True, slots=True)
class Declared:
    """A name of a body or signature. ``role`` is "variable", "parameter", "loop variable", "state",
    "constant" or "size"."""

    name: str
    file: SourceFile
    span: Span
    role: str
    mutable: bool = False  # said `mut`
    lent: bool = False  # `&mut`: what is written to it is seen by the caller
    elsewhere: bool = False  # the name has a meaning outside of the function, or stands in several patterns


@dataclass(frozen=True, slots=True)
class DeclaredItem:
    """An item of the root file. ``kind`` is "function", "stream", "constant", "struct", "type"
    or "import"."""

    name: str
    span: Span
    whole: Span
    kind: str
    exported: bool
    importable: bool  # it cannot be exported, so that imports by other files are its only use beyond this one


@dataclass(slots=True)
class Usage:
    """Collected while bodies are checked. Items are known by their qualified names."""

    declared: dict[Place, Declared] = field(default_factory=dict[Place, Declared])
    read: set[Place] = field(default_factory=set[Place])
    written: set[Place] = field(default_factory=set[Place])
    items: list[DeclaredItem] = field(default_factory=list[DeclaredItem])
    imports: set[str] = field(default_factory=set[str])  # names of imports of the root file that are used
    #: Operators as written, by where they stand: what the compiler adds by itself is not the reader's.
    operators: dict[Place, str] = field(default_factory=dict[Place, str])
    #: Expressions that stand as statements with a `;`, and loops whose ranges are empty as written, with the
    #: places of the ranges.
    statements: set[Place] = field(default_factory=set[Place])
    empty_ranges: dict[Place, Span] = field(default_factory=dict[Place, Span])
    #: For arms of `match` and their alternatives: why no value of an instance reaches them, if none does.
    arms: dict[Place, list[Diagnostic | None]] = field(default_factory=dict[Place, "list[Diagnostic | None]"])
    _uses: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def note_arm(self, file: SourceFile, span: Span, finding: Diagnostic | None) -> None:
        """What one instance says of an arm or alternative."""
        self.arms.setdefault((file.path, span), []).append(finding)

    def uses(self, owner: str, item: str) -> None:
        """An item's text (that of a test: ``owner`` "") names another item."""
        self._uses.setdefault(owner, set()).add(item)

    def reachable(self) -> set[str]:
        """Names of the root's items that its exports and tests reach; of all, where it exports nothing: then
        it is a module, and what it declares is for others to import."""
        if not any(item.exported for item in self.items):
            return {item.name for item in self.items}
        found: set[str] = set()
        stack = ["", *(item.name for item in self.items if item.exported or item.importable)]
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack.extend(self._uses.get(name, ()))
        return found

    def unread(self) -> Iterator[Declared]:
        """Names never read, in the order of their declaration."""
        return (
            item for place, item in self.declared.items()
            if place not in self.read and not (item.lent and place in self.written)
        )

    def never_written(self) -> Iterator[Declared]:
        """Names that said `mut` for nothing."""
        return (
            item for place, item in self.declared.items() if item.mutable and place not in self.written
        )

"""What a name can mean, and the nesting of names in a body."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.syntax import ast
from kera_hw.support import SourceFile, Span
from kera_hw.types import Type

#: A linear form: coefficients of atoms, the constant under None. Atoms compare by identity or spelling.
Linear = dict[object, int]


@dataclass(eq=False, slots=True)
class Local:
    """A run-time name: parameter, variable, loop variable, state. ``lambda_level`` counts the lambdas around
    its declaration; ``linear`` is the linear form of an immutable local's value where it has one."""

    var: hir.Var
    role: str  # "parameter", "variable", "loop variable", "state"
    borrow: str = ""
    lambda_level: int = 0
    linear: Linear | None = None


@dataclass(eq=False, slots=True)
class Constant:
    """A compile-time value: constant or size."""

    name: str
    type: Type
    value: Any
    span: Span


@dataclass(eq=False, slots=True)
class Held:
    """``state f: fir;``: an instance of a stream, known by the variable that holds its state."""

    var: hir.Var
    stream: Any  # program.Instance; None when the declaration was wrong


@dataclass(eq=False, slots=True)
class Broken:
    """A name whose declaration was reported: its uses stay silent."""

    span: Span


@dataclass(eq=False, slots=True)
class Module:
    """One file's items by name."""

    name: str  # "" for the root
    file: SourceFile
    unit: ast.SourceUnit
    items: dict[str, ItemSymbol] = field(default_factory=dict[str, "ItemSymbol"])
    #: Names inside top-level text that did not parse: it may have meant to declare them.
    lost_names: set[str] = field(default_factory=set[str])

    def qualified(self, name: str) -> str:
        return f"{self.name}::{name}" if self.name else name


@dataclass(eq=False, slots=True)
class ItemSymbol:
    """An item of a module; what it resolves to is found on demand and kept in ``resolved``."""

    module: Module
    name: str
    node: ast.Item
    resolved: Any = None
    resolving: bool = False
    is_module: bool = False  # `use module;` of a module that exists

    @property
    def failed_import(self) -> bool:
        """Whether this is an import that was reported, so that its uses stay silent."""
        return isinstance(self.node, ast.UseItem) and not self.is_module

    @property
    def qualified(self) -> str:
        return self.module.qualified(self.name)

    @property
    def name_span(self) -> Span:
        token = self.node.name_token
        return token.span if token else self.node.span

    @property
    def kind_text(self) -> str:
        """What the item is, with its article, for messages."""
        if self.is_module:
            return "a module"
        for cls, text in _KINDS:
            if isinstance(self.node, cls):
                return text
        return "an item"


_KINDS: tuple[tuple[type[ast.Item], str], ...] = (
    (ast.FnItem, "a function"), (ast.StreamItem, "a stream"), (ast.ConstItem, "a constant"),
    (ast.StructItem, "a struct"), (ast.TypeAliasItem, "a type"), (ast.UseItem, "an import"),
)

Symbol = Local | Constant | Held | Broken | ItemSymbol


class Scopes:
    """The blocks around the current place, innermost last."""

    def __init__(self) -> None:
        self.levels: list[dict[str, Symbol]] = [{}]

    def push(self) -> None:
        self.levels.append({})

    def pop(self) -> None:
        self.levels.pop()

    def declare(self, name: str, symbol: Symbol) -> None:
        """Bring a name in; a later one of the same name shadows it."""
        self.levels[-1][name] = symbol

    def find(self, name: str) -> Symbol | None:
        for level in reversed(self.levels):
            found = level.get(name)
            if found is not None:
                return found
        return None

    def names(self) -> Iterator[str]:
        for level in reversed(self.levels):
            yield from level


def closest(name: str, candidates: Iterator[str] | list[str]) -> str | None:
    """The candidate a reader most likely meant, None when none is near."""
    found = get_close_matches(name, list(dict.fromkeys(candidates)), n=1, cutoff=0.7)
    return found[0] if found else None

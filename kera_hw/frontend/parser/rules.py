"""What the parts of the grammar offer one another, so that none has to import another."""
from __future__ import annotations

from abc import ABC, abstractmethod

from kera_hw.frontend.syntax.kinds import SyntaxKind


class Completed:
    """A finished node, which a later node may still be opened around."""

    __slots__ = ("first_token", "kind", "start")

    def __init__(self, start: int, kind: SyntaxKind, first_token: int) -> None:
        self.start = start
        self.kind = kind
        self.first_token = first_token


class Marker:
    """A node that has been opened and not yet finished."""

    __slots__ = ("first_token", "start")

    def __init__(self, start: int, first_token: int) -> None:
        self.start = start
        self.first_token = first_token


class Rules(ABC):
    """One method a construct; the mixins of the grammar package implement them."""

    @abstractmethod
    def expression(self, struct_ok: bool = True) -> Completed | None: ...

    @abstractmethod
    def open_expression(self, struct_ok: bool = True) -> Completed | None: ...

    @abstractmethod
    def operators_after(self, found: Completed, struct_ok: bool = True) -> Completed: ...

    @abstractmethod
    def any_expression(self) -> None: ...

    @abstractmethod
    def peek_assign(self) -> tuple[SyntaxKind, int] | None: ...

    @abstractmethod
    def atom(self, struct_ok: bool) -> Completed | None: ...

    @abstractmethod
    def unary_operand(self, struct_ok: bool) -> None: ...

    @abstractmethod
    def lambda_(self, struct_ok: bool) -> Completed: ...

    @abstractmethod
    def postfix(self, found: Completed) -> Completed: ...

    @abstractmethod
    def size_expression(self) -> Completed | None: ...

    @abstractmethod
    def type_(self, under_as: bool = False) -> None: ...

    @abstractmethod
    def path(self) -> None: ...

    @abstractmethod
    def generic_args(self) -> None: ...

    @abstractmethod
    def binding_pattern(self) -> None: ...

    @abstractmethod
    def match_pattern(self) -> None: ...

    @abstractmethod
    def literal(self) -> Completed: ...

    @abstractmethod
    def block(self, is_body: bool = False) -> None: ...

    @abstractmethod
    def block_into(self, marker: Marker, is_body: bool = False) -> Completed: ...

    @abstractmethod
    def block_like(self) -> Completed: ...

    @abstractmethod
    def block_like_value(self) -> Completed: ...

    @abstractmethod
    def semicolon(self) -> None: ...

    @abstractmethod
    def const_item(self, marker: Marker) -> None: ...

    @abstractmethod
    def item(self) -> bool: ...

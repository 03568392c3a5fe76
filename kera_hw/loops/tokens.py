"""The words of a loop program's text, a line at a time; any other text is refused with its line (K0820)."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from kera_hw.support import Diagnostic, KeraError

_TOKEN = re.compile(
    r"\s*(?:(?P<end>//[^\n]*|$)|(?P<word>[A-Za-z_][\w.]*)|(?P<number>0x[0-9a-f]+|\d\w*)"
    r"|(?P<text>\"[^\"\n]*\")|(?P<mark>->|[{}()\[\],:=<>*+\-]))"
)
T = TypeVar("T")


class Tokens:
    """A place in the text, and what may be taken there."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.number = 0
        self.tokens: list[str] = []
        self.place: int = 0

    def fail(self, message: str) -> NoReturn:
        raise KeraError([Diagnostic("K0820", f"Line {self.number} is no loop program: {message}.")])

    def next_line(self) -> None:
        """On to the next line that holds something."""
        while self.number < len(self.lines):
            line = self.lines[self.number]
            self.number += 1
            self.tokens, self.place = list(self._split(line)), 0
            if self.tokens:
                return
        self.tokens, self.place = [], 0
        self.fail("the text ends too early")

    def _split(self, line: str) -> Iterator[str]:
        place = 0
        while place < len(line):
            found = _TOKEN.match(line, place)
            if found is None:
                self.fail(f"`{line[place:].strip()[:20]}` is no token")
            if found["end"] is not None:
                return
            yield found[0].strip()
            place = found.end()

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            self.fail("the line ends too early")
        self.place += 1
        return token

    def accept(self, token: str) -> bool:
        if self.peek() == token:
            self.place += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            self.fail(f"`{token}` is wanted, not `{self.peek() or 'the end'}`")

    def name(self) -> str:
        token = self.take()
        if not re.fullmatch(r"[A-Za-z_][\w.]*", token):
            self.fail(f"a name is wanted, not `{token}`")
        return token

    def integer(self) -> int:
        negative, token = self.accept("-"), self.take()
        if not re.fullmatch(r"0x[0-9a-f]{1,16}|\d{1,19}", token):
            self.fail(f"a number is wanted, not `{token[:20]}`")
        value = int(token, 0) if token.startswith("0x") else int(token)
        return -value if negative else value

    def listed(self, item: Callable[[], T], close: str) -> list[T]:
        """Items between commas up to ``close``, which is taken."""
        found: list[T] = []
        if self.accept(close):
            return found
        while True:
            found.append(item())
            if self.accept(close):
                return found
            self.expect(",")

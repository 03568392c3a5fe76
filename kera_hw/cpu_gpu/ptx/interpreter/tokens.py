"""PTX text in words, numbers and signs, with what every reader of it asks for."""
from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from kera_hw.cpu_gpu.ptx.table import TYPES
from kera_hw.support import Diagnostic, KeraError

MOST_CHARACTERS = 1 << 30
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|//[^\n]*)|(?P<line>\n|/\*(?s:.*?)\*/)
    |(?P<float>0[fF][0-9a-fA-F]{8}(?![0-9a-zA-Z_$])|0[dD][0-9a-fA-F]{16}(?![0-9a-zA-Z_$]))
    |(?P<number>-?(?:0[xX][0-9a-fA-F]+|[1-9][0-9]*|0)U?(?![0-9a-zA-Z_$.]))
    |(?P<version>[0-9]+\.[0-9]+)
    |(?P<word>[.%]?[a-zA-Z_$][a-zA-Z0-9_$]*(?:\.[a-zA-Z0-9_]+)*)
    |(?P<sign>[][{}()<>,;:=@!+-])""",
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    line: int


def refuse(line: int, message: str) -> NoReturn:
    raise KeraError([Diagnostic("K0707", f"PTX, line {line}: {message}")])


def _tokens(text: str) -> list[Token]:
    if len(text) > MOST_CHARACTERS:
        refuse(1, f"the text has more than {MOST_CHARACTERS:,} characters.")
    found: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            refuse(line, f"{text[at : at + 20].split(chr(10))[0]!r} begins no word, number or sign.")
        if match.lastgroup == "line":
            line += match.group().count("\n")
        elif match.lastgroup != "space":
            found.append(Token(match.lastgroup or "", match.group(), line))
        at = match.end()
    return [*found, Token("end", "", line)]


class Tokens:
    """What is left of a text."""

    def __init__(self, text: str) -> None:
        self._left = _tokens(text)
        self._at = 0

    @property
    def next(self) -> Token:
        return self._left[self._at]

    def take(self, kind: str = "") -> Token:
        token = self.next
        if kind and token.kind != kind:
            refuse(token.line, f"there is {token.text!r} where a {kind} should be.")
        self._at += token.kind != "end"
        return token

    def sign(self, text: str) -> None:
        token = self.take()
        if token.text != text:
            refuse(token.line, f"there is {token.text!r} where `{text}` should be.")

    def has(self, text: str) -> bool:
        """Whether this comes next; if so, it is taken."""
        if self.next.text != text:
            return False
        self.take()
        return True

    def number(self, least: int, most: int) -> int:
        token = self.take("number")
        value = int(token.text.rstrip("U"), 0)
        if not least <= value <= most:
            refuse(token.line, f"{value} is not from {least} to {most}.")
        return value

    def type(self, known: tuple[str, ...] = TYPES) -> str:
        """Without its dot."""
        token = self.take("word")
        if token.text.removeprefix(".") not in known or not token.text.startswith("."):
            refuse(token.line, f"`{token.text}` is no type that may stand here.")
        return token.text[1:]

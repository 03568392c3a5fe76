"""Typed views of paths and literals, which types, patterns and expressions share."""
from __future__ import annotations

import re
from fractions import Fraction

from kera_hw.frontend.syntax.ast_base import Ast, Expr
from kera_hw.frontend.syntax.kinds import SyntaxKind as K
from kera_hw.frontend.syntax.red import SyntaxToken

#: Longest number and largest decimal or binary exponent with a value; the lexer reports beyond (K0009).
MAX_NUMBER_LENGTH = 1000
MAX_EXPONENT = 9999

NUMBER = re.compile(
    r"(?P<hexfloat>0x[0-9a-fA-F][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?[pP][+-]?[0-9][0-9_]*)"
    r"|(?P<hex>0x[0-9a-fA-F_]*)"
    r"|(?P<bin>0b[01_]*)"
    r"|(?P<dec>[0-9][0-9_]*(?:\.(?![._A-Za-z])[0-9_]*)?(?:[eE][+-]?[0-9][0-9_]*)?)"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"'}
ESCAPE = re.compile(r"""\\(?:u\{([0-9a-fA-F]{1,6})\}|x([0-7][0-9a-fA-F])|([ntr0\\"]))""")


class Path(Ast):
    """`name` or `module::name`."""

    __slots__ = ()
    KIND = K.PATH

    @property
    def segments(self) -> list[SyntaxToken]:
        """The names, outermost first."""
        elements = self.node.elements
        return [one for one in elements if isinstance(one, SyntaxToken) and one.green.kind is K.IDENT]

    @property
    def names(self) -> list[str]:
        return [token.text for token in self.segments]

    @property
    def name(self) -> str | None:
        """The last name; the only one unless the path is qualified."""
        token = self.name_token
        return token.text if token is not None else None

    @property
    def name_token(self) -> SyntaxToken | None:
        segments = self.segments
        return segments[-1] if segments else None

    @property
    def is_qualified(self) -> bool:
        return len(self.segments) > 1


class Literal(Expr):
    """A number with the `-` that belongs to it, `true`, `false` or a string."""

    __slots__ = ()
    KIND = K.LITERAL

    @property
    def token(self) -> SyntaxToken | None:
        """The literal itself, without its sign."""
        return self._token(K.INT, K.FLOAT, K.STRING, K.TRUE_KW, K.FALSE_KW)

    @property
    def negative(self) -> bool:
        return self._has(K.MINUS)

    @property
    def is_int(self) -> bool:
        """An integer literal without a float suffix."""
        return self._has(K.INT)

    @property
    def is_float(self) -> bool:
        """A literal with a point, an exponent or a float suffix."""
        return self._has(K.FLOAT)

    @property
    def is_bool(self) -> bool:
        return self._has(K.TRUE_KW) or self._has(K.FALSE_KW)

    @property
    def is_string(self) -> bool:
        return self._has(K.STRING)

    @property
    def bool_value(self) -> bool:
        """True for the literal `true`; meaningful where is_bool holds."""
        return self._has(K.TRUE_KW)

    @property
    def suffix(self) -> str | None:
        """The type written after a number: `i8`, `u32`, `bf16`; None without one."""
        split = self._split()
        return split[1] or None if split else None

    @property
    def int_value(self) -> int | None:
        """The signed value of an integer literal; None for other or malformed literals."""
        value = self.exact_value
        return int(value) if self.is_int and value is not None else None

    @property
    def exact_value(self) -> Fraction | None:
        """The exact signed value of a number as written; None for other or malformed literals.

        The sign of `-0.0` is not in it: see ``negative``.
        """
        split = self._split()
        value = number_value(split[0]) if split else None
        return -value if value is not None and self.negative else value

    @property
    def string_value(self) -> str | None:
        """The text of a string with its escapes resolved; None for other literals."""
        token = self._token(K.STRING)
        if token is None:
            return None
        body = token.text[1:]
        if body.endswith('"'):
            body = body[:-1]
        return ESCAPE.sub(_unescape, body)

    def _split(self) -> tuple[str, str] | None:
        token = self._token(K.INT, K.FLOAT)
        return split_number(token.text) if token else None


def split_number(text: str) -> tuple[str, str]:
    """A number's digits (with prefix, point and exponent) and what follows them, its suffix."""
    match = NUMBER.match(text)
    end = match.end() if match else 0
    # In `1_u8` the underscore belongs to neither.
    return text[:end].rstrip("_"), text[end:]


def number_value(digits: str) -> Fraction | None:
    """Exact value of a literal's digits, None where they are malformed or beyond the limits."""
    digits = digits.replace("_", "").lower()
    if len(digits) > MAX_NUMBER_LENGTH:
        return None
    try:
        if digits.isdecimal():  # as nearly all are
            return Fraction(int(digits))
        if digits.startswith("0b"):
            return Fraction(int(digits[2:], 2))
        if not digits.startswith("0x"):
            return _scaled(digits, "e", 10, 10)
        return _scaled(digits[2:], "p", 16, 2)
    except ValueError:
        return None


def _scaled(digits: str, mark: str, base: int, exponent_base: int) -> Fraction | None:
    mantissa, _, exponent = digits.partition(mark) if mark in digits else (digits, "", "0")
    if abs(int(exponent)) > MAX_EXPONENT:
        return None
    whole, _, part = mantissa.partition(".")
    return Fraction(int(whole + part, base), base ** len(part)) * Fraction(exponent_base) ** int(exponent)


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code is None:
        return _ESCAPES[match[3]]
    value = int(code, 16)
    return chr(value) if value < 0xD800 or 0xDFFF < value < 0x110000 else "\ufffd"

"""What can be wrong inside one token: numbers, escapes, characters."""
from __future__ import annotations

import re
from collections.abc import Iterator

from kera_hw.frontend.syntax.ast_atoms import ESCAPE, MAX_EXPONENT, MAX_NUMBER_LENGTH

_INT_SUFFIX = re.compile(r"[iu](?:[1-9]|[1-5][0-9]|6[0-4])")
_FLOAT_SUFFIX = re.compile(r"bf16|f16|f32|f64")
_EXPONENT = re.compile(r"[eEpP]([+-]?[0-9_]+)$")
_ESCAPE_START = re.compile(r"\\(?:u\{[^}\"]*\}?|x[0-9a-fA-F]{0,2}|.)?")


_CONTROLS = bytes({*range(32), 127} - set(b"\t\n\r\v\f\x1b"))
_LEAST_STRAY_BYTES = 64
_MOST_STRAY_PERCENT = 10


def check_text(data: bytes) -> str | None:
    """What a file is instead of text: it has many control bytes, or many that are not UTF-8."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is UTF-16 and not UTF-8 text; save it as UTF-8"
    controls = len(data) - len(data.translate(None, _CONTROLS))
    broken = data.decode("utf-8", "replace").count("\ufffd")
    percent = 100 * (controls + broken) // max(1, len(data))
    if controls + broken < _LEAST_STRAY_BYTES or percent < _MOST_STRAY_PERCENT:
        return None
    return f"is not text: {percent} % of its bytes are control characters or no UTF-8"


def check_number(digits: str, suffix: str, is_float: bool) -> tuple[str, str] | None:
    """Code and message of the first fault in a number, None for a good one."""
    text = digits + suffix
    if len(text) > MAX_NUMBER_LENGTH:
        return "K0009", f"This number has {len(text)} characters; the limit is {MAX_NUMBER_LENGTH}."
    if digits in ("0x", "0b"):
        return "K0007", f"The number `{text}` has no digits after `{digits}`."
    if digits.startswith("0b") and suffix[:1].isdigit():
        return "K0007", f"The binary number `{text}` has a digit other than 0 and 1."
    if suffix and not _INT_SUFFIX.fullmatch(suffix) and not _FLOAT_SUFFIX.fullmatch(suffix):
        if suffix in ("e", "E", "p", "P"):
            return "K0007", f"The number `{text}` has no digits in its exponent."
        return "K0008", f"`{suffix}` is not a type a number can have."
    if is_float and _INT_SUFFIX.fullmatch(suffix):
        return "K0011", f"The float `{digits}` cannot be of the integer type `{suffix}`."
    if not is_float and digits.startswith("0b") and _FLOAT_SUFFIX.fullmatch(suffix):
        return "K0008", f"A binary number cannot be of the float type `{suffix}`."
    exponent = _EXPONENT.search(digits) if is_float else None
    if exponent is not None and abs(int(exponent[1].replace("_", ""))) > MAX_EXPONENT:
        return "K0009", f"The exponent of this number is beyond {MAX_EXPONENT}."
    return None


def check_string(text: bytes) -> Iterator[tuple[str, int, int, str]]:
    """Code, byte range and message of each fault in a string token."""
    decoded = text.decode()
    body_end = len(decoded)
    position = 1
    while (found := decoded.find("\\", position)) >= 0:
        escape = ESCAPE.match(decoded, found)
        if escape is not None and _is_scalar(escape[1]):
            position = escape.end()
            continue
        wrong = _ESCAPE_START.match(decoded, found)
        assert wrong is not None
        if wrong.end() < body_end or len(wrong[0]) > 1:
            first = len(decoded[:found].encode())
            yield ("K0006", first, first + len(wrong[0].encode()),
                   f"`{wrong[0]}` is not an escape a string can hold.")
        position = max(wrong.end(), found + 1)
    if not is_closed(decoded):
        yield "K0005", 0, len(text), "This string is not closed on its line."


def describe_character(text: str) -> str:
    """Message for a run of characters no token starts with."""
    first = next(character for character in text if not (character.isascii() and character.isalnum()))
    shown = f"`{first}` " if first.isprintable() else ""
    hint = "; `print(\"label\", x)` prints" if first == "$" else ""
    return f"The character {shown}(U+{ord(first):04X}) has no meaning here{hint}."


def _is_scalar(code: str | None) -> bool:
    if code is None:
        return True
    value = int(code, 16)
    return value < 0xD800 or 0xDFFF < value < 0x110000


def is_closed(text: str) -> bool:
    if len(text) < 2 or not text.endswith('"'):
        return False
    body = text[1:-1]
    return (len(body) - len(body.rstrip("\\"))) % 2 == 0

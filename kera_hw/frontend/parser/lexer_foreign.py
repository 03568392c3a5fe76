"""Tokens of other languages: sized numbers of Verilog, text in single quotes, directives, `~`."""
from __future__ import annotations

import re

#: Code, message, advice, and what to replace the token by; either is empty (None).
ForeignToken = tuple[str, str, str, str | None]

_SIZED = re.compile(r"([0-9_]*)'([sS]?)([bBoOdDhH])(.+)")
_BASES = {"b": 2, "o": 8, "d": 10, "h": 16}
_DEFINE = re.compile(r"#\s*define\s+([A-Za-z_]\w*)\s+(\S+)")


def sized_number(text: str) -> ForeignToken:
    """`8'h0f` is `0x0fu8`."""
    match = _SIZED.fullmatch(text)
    assert match is not None
    message = f"`{text}` is how Verilog writes a number."
    width_text, base = match[1].replace("_", ""), _BASES[match[3].lower()]
    digits = match[4].replace("_", "")
    try:
        value = int(digits, base)
    except ValueError:
        return "K0013", message, "a bit is 0 or 1: there is no unknown value", None
    width = int(width_text) if width_text and len(width_text) < 4 else None
    if width is not None and not 1 <= width <= 64:
        return "K0013", message, "an integer has 1 to 64 bits", None
    if width is not None and value >= 1 << width:
        return "K0013", message, f"the value needs more than {width} bits", None
    if match[2] and width is not None and value >= 1 << (width - 1):
        return "K0013", message, "", f"{value - (1 << width)}i{width}"
    suffix = f"{'i' if match[2] else 'u'}{width}" if width is not None else ""
    shown = {2: f"0b{match[4]}", 16: f"0x{match[4]}"}.get(base, str(value))
    return "K0013", message, "", shown + suffix


def quoted(text: str) -> ForeignToken:
    """`'a'`, and `'text'`."""
    inner = text[1:-1] if len(text) > 1 else ""
    if len(inner) == 1 and inner.isascii():
        return ("K0013", "Nothing stands in single quotes.",
                f'write `"{inner}"` for a text, `{ord(inner)}u8` for the code of a character', None)
    if not inner:
        return "K0013", "A single quote has no meaning here.", "text stands in double quotes", None
    return "K0013", "Text stands in double quotes.", "", f'"{inner}"'


def hash_mark(text: str) -> ForeignToken:
    """Comments of Python, attributes of Rust, directives of C."""
    found = _DEFINE.match(text)
    if found is not None:
        return ("K0013", "There are no directives; a value gets a name as a constant.",
                f"write `const {found[1]}: u32 = {found[2]};`", None)
    if re.match(r"#\s*include|#\s*import", text):
        return "K0013", "Items of other files are brought in with `use`.", "write `use module::name;`", None
    if text.startswith("#["):
        return "K0013", "There are no attributes.", "a test is `test \"name\" { .. }`", None
    return "K0013", "A comment begins with `//`.", "write `//`", None


def tick(text: str) -> ForeignToken:
    """Macros of Verilog."""
    return "K0013", "There are no directives; a value gets a name as a constant.", (
        "write `const N: u32 = 4;`"), None


def tilde(text: str) -> ForeignToken:
    """The complement."""
    return "K0013", "The complement is written `!`.", "", "!"

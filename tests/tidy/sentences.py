"""A page as its sentences, without code blocks, tables, headings and markup."""
from __future__ import annotations

import re
from pathlib import Path

_NOT_PROSE = re.compile(r"<!--.*?-->|^```.*?^```$|^#[^\n]*$|^\|[^\n]*$", re.DOTALL | re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=- |\d\. )")
_MARKER = re.compile(r"^(?:- |\d\. )")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_NEXT = re.compile(r"(?<=\.)\s+(?=[A-Z`(\d])")


def sentences(text: str) -> list[str]:
    """In order, white space joined; a list item or paragraph begins a new one."""
    found: list[str] = []
    for block in _PARAGRAPH.split(_NOT_PROSE.sub("", text)):
        prose = " ".join(_MARKER.sub("", block.strip()).split())
        if prose:
            found += _NEXT.split(_LINK.sub(r"\1", prose.replace("**", "")))
    return found


def sentences_of(page: Path) -> list[str]:
    return sentences(page.read_text(encoding="utf-8"))

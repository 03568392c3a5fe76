"""Paths that pages mention in code spans exist."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.repo import ROOT, files_with_suffix, relative

_TOP = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"build"}
_PACKAGES = {path.name for path in (ROOT / "kera_hw").iterdir() if path.is_dir()} - _TOP
_SPAN = re.compile(r"`([\w.-]+(?:/[\w.*-]+)+)/?`")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def missing(text: str) -> list[str]:
    """Paths below the project's folders or packages, in code spans of a page, that lead to nothing."""
    spans = _SPAN.findall(_FENCED.sub("", text))
    below = {**dict.fromkeys(_TOP, ROOT), **dict.fromkeys(_PACKAGES, ROOT / "kera_hw")}
    start = {span: below.get(span.split("/")[0]) for span in spans}
    return [span for span in spans if (folder := start[span]) is not None and not list(folder.glob(span))]


@pytest.mark.parametrize("page", files_with_suffix(".md"), ids=relative)
def test_paths_exist(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


def test_a_path_that_is_gone_is_found() -> None:
    text = "`tests/golden`, `tests/unit`, `tools/gen_*.py`, `a/b`, `ops/bits.py`, `ops/x.py`, `kera_hw/y.py`"
    assert missing(text) == ["tests/golden", "ops/x.py", "kera_hw/y.py"]

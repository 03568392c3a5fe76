"""Paths that pages mention in code spans exist."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.repo import ROOT, files_with_suffix, relative

_TOP = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"build"}
_SPAN = re.compile(r"`([\w.-]+(?:/[\w.*-]+)+)/?`")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def missing(text: str) -> list[str]:
    """Paths below the project's folders, in code spans of a page, that lead to nothing."""
    spans = _SPAN.findall(_FENCED.sub("", text))
    return [span for span in spans if span.split("/")[0] in _TOP and not list(ROOT.glob(span))]


@pytest.mark.parametrize("page", files_with_suffix(".md"), ids=relative)
def test_paths_exist(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


def test_a_path_that_is_gone_is_found() -> None:
    assert missing("`tests/golden`, `tests/unit`, `tools/gen_*.py`, `a/b` and `kera_hw/nothing.py`") == [
        "tests/golden", "kera_hw/nothing.py",
    ]

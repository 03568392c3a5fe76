"""Documentation stays true: links lead somewhere, commands run, generated pages are fresh."""
from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy import console
from tests.tidy.repo import ROOT, files_with_suffix, relative

pytestmark = pytest.mark.usefixtures("searched_once")

PAGES = files_with_suffix(".md")
GENERATORS = sorted((ROOT / "tools").glob("gen_*.py"))
_LINK = re.compile(r"!?\[[^\]\n]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
_FENCED = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)


def _slug(heading: str) -> str:
    """GitHub's anchor for a heading."""
    text = re.sub(r"[`*_]|\[|\]\([^)]*\)", "", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def _anchors(page: Path) -> set[str]:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return {_slug(match) for match in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", text, re.MULTILINE)} | set(
        re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)
    )


def broken_links(page: Path) -> list[str]:
    """Relative links of one page that lead to no file, or to no heading in it."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    text = re.sub(r"`[^`\n]*`", "", text)
    broken: list[str] = []
    for link in _LINK.findall(text) + _REFERENCE.findall(text):
        if re.match(r"^[a-z][a-z0-9+.-]*:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        has_headings = target.suffix == ".md" and target.is_file()
        if not target.exists() or (anchor and has_headings and anchor not in _anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_to_files(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](#one-thing) [b](#other) [c](gone.md) `[d](code.md)`\n[e](https://x.y/z)\n")
    assert broken_links(page) == ["#other", "gone.md"]


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_shell_blocks_use_console(page: Path) -> None:
    """A command in a block of another language would be shown and never run."""
    assert console.stray_commands(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "page", [p for p in PAGES if console.commands(p.read_text(encoding="utf-8"))], ids=relative
)
def test_commands_run(page: Path, tmp_path: Path) -> None:
    directory = console.workspace(tmp_path)
    failures = [
        failure
        for command in console.commands(page.read_text(encoding="utf-8"))
        if (failure := console.run(command, directory)) is not None
    ]
    assert not failures, "\n".join(failures)


def test_console_blocks_are_understood(tmp_path: Path) -> None:
    text = (
        "```console\n$ echo one \\\n    two\none two\n$ false  # exit 1\n$ false\n```\n"
        "```sh\nkera check x\n```\n"
    )
    found = console.commands(text)
    assert [(c.line, c.text, c.status) for c in found] == [
        (2, "echo one two", 0), (5, "false", 1), (6, "false", 0),
    ]
    assert [console.run(c, tmp_path) is None for c in found] == [True, True, False]
    assert console.stray_commands(text) == [9]


@pytest.mark.parametrize("generator", GENERATORS, ids=relative)
def test_generated_files_are_fresh(generator: Path) -> None:
    """``tools/gen_*.py`` write committed files; with ``--check`` they compare instead and exit 1 if stale."""
    done = subprocess.run(
        [sys.executable, str(generator), "--check"], cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stdout + done.stderr

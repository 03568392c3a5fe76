"""Commands shown in the documentation: collected from fenced ``console`` blocks and run.

A line that starts with ``$ `` is a command, every other line of the block is output. A trailing
``# exit N`` says which exit status the reader will see; without it the command must succeed.
"""
from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.repo import ROOT

_FENCE = re.compile(r"^(?P<mark>```+|~~~+)\s*(?P<language>[\w-]*)")
_EXIT = re.compile(r"#\s*exit (\d+)\s*$")
_PROMPT = re.compile(r"^\$ (?P<command>\S.*)$")
_OURS = re.compile(r"^\s*(\$ )?(\.venv/bin/)?(kera|make) \w")
_SET_UP = ("git clone ", "cd ", "pip install ", "sudo ", "apt-get ", "source ")
COMMAND_LIMIT_S = 240


@dataclass(frozen=True)
class Command:
    """One command with the line it stands on (one-based) and the exit status it promises."""

    line: int
    text: str
    status: int = 0


def blocks(markdown: str) -> list[tuple[str, int, list[str]]]:
    """Fenced blocks as (language, line number of the first line inside, lines)."""
    found: list[tuple[str, int, list[str]]] = []
    fence = ""
    for number, line in enumerate(markdown.splitlines(), 1):
        match = _FENCE.match(line)
        if not fence and match:
            fence = match["mark"]
            found.append((match["language"], number + 1, []))
        elif fence and line.strip() == fence:
            fence = ""
        elif fence:
            found[-1][2].append(line)
    return found


def commands(markdown: str) -> list[Command]:
    """Commands of all ``console`` blocks, in order; a line ending in a backslash goes on."""
    found: list[Command] = []
    for language, first, lines in blocks(markdown):
        if language != "console":
            continue
        index = 0
        while index < len(lines):
            match = _PROMPT.match(lines[index])
            start = index
            index += 1
            if not match:
                continue
            text = match["command"]
            while text.endswith("\\") and index < len(lines):
                text = text[:-1].rstrip() + " " + lines[index].strip()
                index += 1
            status = _EXIT.search(text)
            text = _EXIT.sub("", text).rstrip()
            found.append(Command(first + start, text, int(status[1]) if status else 0))
    return found


def stray_commands(markdown: str) -> list[int]:
    """Lines in shell blocks of another kind that look like ours and so would never be run."""
    return [
        first + offset
        for language, first, lines in blocks(markdown)
        if language in {"sh", "bash", "shell", "shell-session", "zsh"}
        for offset, line in enumerate(lines)
        if _OURS.match(line)
    ]


def workspace(directory: Path) -> Path:
    """A copy of the project's surface to run commands in, so that they leave nothing in the real one."""
    for entry in ROOT.iterdir():
        if entry.name in {".git", "build", "dist"}:
            continue
        if entry.name in {"examples"}:
            shutil.copytree(entry, directory / entry.name)
        else:
            (directory / entry.name).symlink_to(entry)
    return directory


def run(command: Command, directory: Path) -> str | None:
    """Run one command; None when it did what it promises, else what went wrong.

    Set-up commands (clone, install) are for the reader's machine and are not run; ``make`` targets
    are resolved with ``make -n``, because they would start this very test again.
    """
    text = command.text
    if text.startswith(_SET_UP):
        return None
    if text.startswith("make"):
        text = "make -n" + text.removeprefix("make")
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "MPLBACKEND": "agg"}
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", text], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=COMMAND_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return f"line {command.line}: `{command.text}` did not end within {COMMAND_LIMIT_S} s"
    if done.returncode == command.status:
        return None
    tail = (done.stdout + done.stderr)[-1500:]
    return (
        f"line {command.line}: `{command.text}` ended with status {done.returncode}, "
        f"promised {command.status}:\n{tail}"
    )

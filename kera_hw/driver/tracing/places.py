"""Places in Python source: where a traced operation stands, as a file and the bytes of its text."""
from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

from kera_hw.graph import Origin
from kera_hw.support import SourceFile, Span

_OURS = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a Python file."""

    file: SourceFile
    span: Span
    line: int

    @property
    def origin(self) -> Origin:
        """The place as graphs keep it."""
        return Origin(self.file.path, self.span, self.line)

    @property
    def text(self) -> str:
        """What stands there, on one line."""
        return " ".join(self.file.text(self.span).split())


class Files:
    """Python files read once, also those that only an interactive session or a notebook has."""

    def __init__(self) -> None:
        self._files: dict[str, SourceFile] = {}

    def file(self, path: str, line: int) -> SourceFile:
        """The file, or empty lines up to ``line`` where there is no text, as of `exec`."""
        found = self._files.get(path)
        if found is None:
            lines = linecache.getlines(path)
            found = self._files[path] = SourceFile.from_text("".join(lines) or "\n" * line, path)
        return found

    def caller(self) -> Place:
        """The expression that is being evaluated in the innermost frame of the user's own code."""
        frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - no public way in
        while frame is not None and _foreign(frame.f_code.co_filename):
            frame = frame.f_back
        assert frame is not None, "tracing is called from somewhere"
        first, last, left, right = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
        line = first or frame.f_lineno
        file = self.file(frame.f_code.co_filename, line)
        if left is None or right is None or last is None:
            return Place(file, self._lines(file, line, line), line)
        return Place(file, Span(self._start(file, line) + left, self._start(file, last) + right), line)

    def function(self, code: CodeType) -> Place:
        """A function from its first line to the end of the last that it has code for."""
        lines = [line for _, _, line in code.co_lines() if line is not None]
        first = code.co_firstlineno
        file = self.file(code.co_filename, max(lines, default=first))
        return Place(file, self._lines(file, first, max(lines, default=first)), first)

    def _lines(self, file: SourceFile, first: int, last: int) -> Span:
        start, end = self._start(file, first), self._start(file, last + 1)
        text = file.data[start:end]
        indent = len(text) - len(text.lstrip())
        return Span(start + (indent if first == last else 0), start + len(text.rstrip()))

    @staticmethod
    def _start(file: SourceFile, line: int) -> int:
        starts = file.line_starts
        return starts[line - 1] if line <= len(starts) else len(file.data)


def _foreign(path: str) -> bool:
    """Whether code is of tracing itself, or of NumPy, which calls it for its own functions."""
    return Path(path).parent == _OURS or "/numpy/" in Path(path).as_posix()

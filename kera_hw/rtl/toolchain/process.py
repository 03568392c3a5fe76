"""One way to run an external tool: an argument list, a directory, a time limit, a log, a clear error."""
from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kera_hw.support.diagnostic import Diagnostic

QUOTED_CHARS = 1500


class ToolError(Exception):
    """A tool could not do its work; ``diagnostic`` says it to the user, ``exit_status`` to the shell."""

    exit_status = 1

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(f"{diagnostic.code}: {diagnostic.message}")
        self.diagnostic = diagnostic


class ToolMissing(ToolError):
    """The tool is not on this machine (K0950)."""

    exit_status = 3

    def __init__(self, tool: str, remedy: str) -> None:
        super().__init__(Diagnostic("K0950", f"{tool} is needed here and was not found.", notes=(remedy,)))
        self.tool = tool


class ToolFailed(ToolError):
    """The tool ended with a failure (K0951); ``log`` is everything it printed."""

    def __init__(self, tool: str, status: int, log: str) -> None:
        message = f"{tool} failed with status {status}."
        super().__init__(Diagnostic("K0951", message, notes=(_last_lines(log),) if log.strip() else ()))
        self.tool = tool
        self.status = status
        self.log = log

    def __str__(self) -> str:
        return f"{super().__str__()}\n{_last_lines(self.log)}"


class ToolTimeout(ToolError):
    """The tool was stopped after its time limit (K0952)."""

    def __init__(self, tool: str, limit_s: float) -> None:
        super().__init__(Diagnostic("K0952", f"{tool} did not end within {limit_s:g} s and was stopped."))
        self.tool = tool


def _last_lines(log: str) -> str:
    text = log.rstrip()
    if len(text) <= QUOTED_CHARS:
        return text
    return text[-QUOTED_CHARS:].partition("\n")[2] or text[-QUOTED_CHARS:]


@dataclass(frozen=True, slots=True)
class Completed:
    """What a run left behind: exit status and everything printed, stdout and stderr in one."""

    status: int
    log: str


def run_tool(
    tool: str,
    argv: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    check: bool = True,
) -> Completed:
    """Run ``argv`` in ``cwd``; ``env`` is added to the environment, stdin is empty.

    The child stays in our process group, so whoever ends us ends it as well. Raises ToolMissing when
    the program is not there, ToolTimeout after ``timeout_s`` seconds and, with ``check``, ToolFailed.
    """
    with tempfile.TemporaryFile() as sink:
        try:
            done = subprocess.run(
                [os.fspath(part) for part in argv], cwd=cwd, env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                timeout=timeout_s, check=False,
            )
        except FileNotFoundError as error:
            raise ToolMissing(tool, f"`{os.fspath(argv[0])}` does not exist; see `kera doctor`.") from error
        except subprocess.TimeoutExpired as error:
            raise ToolTimeout(tool, timeout_s) from error
        sink.seek(0)
        log = sink.read().decode("utf-8", "replace")
    if check and done.returncode:
        raise ToolFailed(tool, done.returncode, log)
    return Completed(done.returncode, log)


@contextmanager
def scratch(prefix: str) -> Generator[Path]:
    """A temporary directory that is gone afterwards, whatever happens."""
    with tempfile.TemporaryDirectory(prefix=f"kera-{prefix}-") as name:
        yield Path(name)

"""One way to run an external tool: an argument list, a directory, a time limit, a log, a clear error."""
from __future__ import annotations

import os
import re
import select
import shlex
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

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
    """The tool ended with a failure (K0951); ``log`` is everything it printed, ``kept`` the file it is in."""

    def __init__(self, tool: str, status: int, log: str, kept: Path | None = None) -> None:
        message = f"{tool} failed with status {status}."
        said = (_last_lines(log),) if log.strip() else ()
        super().__init__(Diagnostic("K0951", message, notes=(*said, *whole_log(kept))))
        self.kept = kept
        self.tool = tool
        self.status = status
        self.log = log

    def __str__(self) -> str:
        return f"{super().__str__()}\n{_last_lines(self.log)}"


class ToolTimeout(ToolError):
    """The tool was stopped after its time limit (K0952)."""

    def __init__(self, tool: str, limit_s: float, kept: Path | None = None) -> None:
        message = f"{tool} did not end within {limit_s:g} s and was stopped."
        super().__init__(Diagnostic("K0952", message, notes=whole_log(kept)))
        self.tool = tool


def whole_log(kept: Path | None) -> tuple[str, ...]:
    """The note that says where a kept log is."""
    return (f"All that it printed is in {kept}.",) if kept is not None else ()


def _last_lines(log: str) -> str:
    text = log.rstrip()
    if len(text) <= QUOTED_CHARS:
        return text
    return text[-QUOTED_CHARS:].partition("\n")[2] or text[-QUOTED_CHARS:]


@dataclass(frozen=True, slots=True)
class Completed:
    """What a run left behind: exit status, everything printed (stdout and stderr in one), the log kept."""

    status: int
    log: str
    kept: Path | None = None


_log_directory: ContextVar[LogDirectory | None] = ContextVar("log_directory", default=None)
_LOG_NAME = re.compile(r"\d\d+-[\w-]+\.log")


class LogDirectory:
    """Where tools' logs are kept, a file a run, numbered; those of an earlier use make way for the first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: list[str] = []

    def clear(self) -> None:
        """Removes the logs that stand there, and the directory with the last of them."""
        if self.path.is_dir():
            for item in self.path.iterdir():
                if _LOG_NAME.fullmatch(item.name):
                    item.unlink()
            if not any(self.path.iterdir()):
                self.path.rmdir()

    def open(self, tool: str) -> BinaryIO:
        """The file for the next run, open for writing and reading."""
        if not self.names:
            self.clear()
            self.path.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"[^a-z0-9]+", "-", tool.lower().replace("+", "x")).strip("-")
        self.names.append(f"{len(self.names) + 1:02}-{stem}.log")
        return (self.path / self.names[-1]).open("w+b")


@contextmanager
def keep_logs(directory: Path) -> Generator[LogDirectory]:
    """Keeps in ``directory`` what each tool prints that runs meanwhile, while it prints it."""
    logs = LogDirectory(directory)
    token = _log_directory.set(logs)
    try:
        yield logs
    finally:
        _log_directory.reset(token)


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
    logs = _log_directory.get()
    with logs.open(tool) if logs is not None else cast(BinaryIO, tempfile.TemporaryFile()) as sink:
        kept = logs.path / logs.names[-1] if logs is not None else None
        if kept is not None:
            sink.write(f"$ {shlex.join(os.fspath(part) for part in argv)}\n".encode())
            sink.flush()
        start = sink.tell()
        try:
            with subprocess.Popen(
                [os.fspath(part) for part in argv], cwd=cwd, env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
            ) as process:
                try:
                    status = _status(process, timeout_s)
                except:
                    process.kill()
                    raise
        except FileNotFoundError as error:
            raise ToolMissing(tool, f"`{os.fspath(argv[0])}` does not exist; see `kera doctor`.") from error
        except subprocess.TimeoutExpired as error:
            raise ToolTimeout(tool, timeout_s, kept) from error
        sink.seek(start)
        log = sink.read().decode("utf-8", "replace")
    if check and status:
        raise ToolFailed(tool, status, log, kept)
    return Completed(status, log, kept)


def _status(process: subprocess.Popen[bytes], timeout_s: float) -> int:
    """The exit status. Raises TimeoutExpired. With a limit, Popen.wait alone looks 20 times a second."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # another system, or an old one
        return process.wait(timeout_s)
    try:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        if not waiting.poll(1000 * timeout_s):
            raise subprocess.TimeoutExpired(process.args, timeout_s)
    finally:
        os.close(handle)
    return process.wait()


@contextmanager
def scratch(prefix: str) -> Generator[Path]:
    """A temporary directory that is gone afterwards, whatever happens."""
    with tempfile.TemporaryDirectory(prefix=f"kera-{prefix}-") as name:
        yield Path(name)

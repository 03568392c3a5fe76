"""Progress on stderr: a bar on a terminal, elsewhere a line a step once a command takes its time."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

Report = Callable[[str], None]

# What is done by then says nothing at all; a step that lasts is spoken of again now and then.
_SILENT_S = 2.0
_REMINDER_S = 60.0


@contextmanager
def bar(title: str, steps: int) -> Generator[Report]:
    """A bar that advances at each call and is gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=steps + 1)
        yield lambda text: shown.update(task, advance=1, description=f"{title}: {text}")


@contextmanager
def lines(title: str, silent_s: float = _SILENT_S, reminder_s: float = _REMINDER_S) -> Generator[Report]:
    """A line a step with the time since the start; none from a command that ends within ``silent_s``."""
    teller = _Teller(title)
    thread = threading.Thread(target=teller.watch, args=(silent_s, reminder_s), daemon=True)
    thread.start()
    try:
        yield teller.step
    finally:
        teller.ended.set()
        thread.join()


class _Teller:
    """Writes from the thread that works and from the one that watches, one line at a time."""

    def __init__(self, title: str) -> None:
        self.ended = threading.Event()
        self._title = title
        self._start = time.monotonic()
        self._lock = threading.Lock()
        self._waiting: list[str] | None = []  # lines of the silent time; None once it is over
        self._last = "starting"
        self._told_at = self._start

    def step(self, text: str) -> None:
        with self._lock:
            self._last = text
            self._tell(text)

    def watch(self, silent_s: float, reminder_s: float) -> None:
        if self.ended.wait(silent_s):
            return
        with self._lock:
            waiting, self._waiting = self._waiting or [], None
            self._write(waiting or [self._line(self._last)])
        while not self.ended.wait(max(0.01, self._told_at + reminder_s - time.monotonic())):
            with self._lock:
                if time.monotonic() - self._told_at >= reminder_s:
                    self._tell(f"still {self._last}")

    def _line(self, text: str) -> str:
        return f"[{time.monotonic() - self._start:7.1f} s] {self._title}: {text}\n"

    def _tell(self, text: str) -> None:
        line = self._line(text)
        if self._waiting is None:
            self._write([line])
        else:
            self._waiting.append(line)

    def _write(self, told: list[str]) -> None:
        self._told_at = time.monotonic()
        try:
            sys.stderr.write("".join(told))
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody listens any more, which is no reason to stop working

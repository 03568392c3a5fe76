"""Threads that wait for native code to run: a few for the whole process, made when first needed.

They are Python's: a call through ctypes lets go of the interpreter, so that what they run goes on at once,
and a thread of the C library's would need a function of C to begin with. After a fork the child has none, and
makes its own; they end before the interpreter does.
"""
from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Sequence

Task = Callable[[], None]


class Pool:
    """Workers beside the thread that calls. One call at a time has them; another does its tasks itself."""

    def __init__(self) -> None:
        self._workers: list[_Worker] = []
        self._busy = threading.Lock()

    def run(self, tasks: Sequence[Task]) -> None:
        """All tasks, the first in this thread. Raises what one of them does once all have ended."""
        if len(tasks) == 1 or not self._busy.acquire(blocking=False):
            for task in tasks:
                task()
            return
        try:
            first, *others = tasks
            while len(self._workers) < len(others):
                self._workers.append(_Worker(len(self._workers)))
            begun = self._workers[: len(others)]
            for worker, task in zip(begun, others):
                worker.begin(task)
            try:
                first()
            finally:
                faults = [worker.end() for worker in begun]
            for fault in faults:
                if fault is not None:
                    raise fault
        finally:
            self._busy.release()

    def stop(self) -> None:
        """Ends the threads."""
        with self._busy:
            for worker in self._workers:
                worker.stop()
            self._workers.clear()


class _Worker:
    """A thread that waits at one lock and says by another that it is done."""

    def __init__(self, number: int) -> None:
        self._task: Task | None = None
        self._fault: BaseException | None = None
        self._begin, self._done = threading.Lock(), threading.Lock()
        self._begin.acquire()
        self._done.acquire()
        self._thread = threading.Thread(target=self._work, name=f"kera-{number}", daemon=True)
        self._thread.start()

    def begin(self, task: Task) -> None:
        self._task = task
        self._begin.release()

    def stop(self) -> None:
        self._begin.release()
        self._thread.join()

    def end(self) -> BaseException | None:
        self._done.acquire()
        fault, self._fault, self._task = self._fault, None, None
        return fault

    def _work(self) -> None:
        while self._begin.acquire() and self._task is not None:
            try:
                self._task()
            except BaseException as fault:
                self._fault = fault
            self._done.release()


_pool = Pool()


def pool() -> Pool:
    """That of this process."""
    return _pool


def _after_fork() -> None:
    global _pool
    _pool = Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _pool.stop())


def usable_cpus() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

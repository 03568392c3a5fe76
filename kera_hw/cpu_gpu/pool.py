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
from queue import SimpleQueue

Task = Callable[[], None]


class Pool:
    """Workers beside the threads that call. What no worker has begun, the one who calls does itself."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self._growing = threading.Lock()
        self._most: int | None = None  # that can be made, once that is known

    def run(self, tasks: Sequence[Task]) -> None:
        """All tasks, the first in this thread. Raises what one of them does once all have ended.

        A signal's handler may raise at any place here, as Ctrl-C does: no task runs on after that, since
        what it works on is gone then.
        """
        first, *others = tasks
        jobs = [_Job(task) for task in others]
        here, interrupt = object(), None
        try:
            if jobs:
                self._grow(len(jobs))
            for job in jobs:
                self._jobs.put(job)
            first()
            for job in jobs:
                if job.taken_by(here):
                    job.run()
        finally:
            while True:  # in this function, whose caller could be interrupted as the call begins
                try:
                    for job in jobs:
                        if not job.taken_by(here):
                            job.wait()
                    break
                except BaseException as fault:
                    interrupt = fault
            if interrupt is not None:
                raise interrupt
        for job in jobs:
            if job.fault is not None:
                raise job.fault

    def _grow(self, count: int) -> None:
        """As many workers as that, or as many as there can be."""
        while len(self._workers) < (count if self._most is None else min(count, self._most)):
            with self._growing:
                name = f"kera-{len(self._workers)}"
                worker = threading.Thread(target=self._work, name=name, daemon=True)
                try:
                    worker.start()
                except RuntimeError:  # no more threads, or the interpreter ends
                    self._most = len(self._workers)
                else:
                    self._workers.append(worker)

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            if job.taken_by(self):
                job.run()
            del job  # which has references to arrays

    def stop(self) -> None:
        """Ends the threads; who calls then has none."""
        with self._growing:
            self._most = 0
            workers, self._workers = self._workers, []
        for _ in workers:
            self._jobs.put(None)
        for worker in workers:
            worker.join()


class _Job:
    """A task that one thread does: the first that takes it."""

    def __init__(self, task: Task) -> None:
        self.fault: BaseException | None = None
        self._task = task
        self._taken: dict[None, object] = {}
        self._has_ended, self._ended = False, threading.Lock()
        self._ended.acquire()

    def taken_by(self, thread: object) -> bool:
        """Whether it is that thread's, which it becomes if it is nobody's. In one step, asked any time."""
        return self._taken.setdefault(None, thread) is thread

    def run(self) -> None:
        try:
            self._task()
        except BaseException as fault:
            self.fault = fault
        self._has_ended = True
        self._ended.release()

    def wait(self) -> None:
        """Until it has ended, also where an earlier call of this was interrupted at any place."""
        while not self._has_ended:
            self._ended.acquire()


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

"""Room on Python's stack for recursive walks over what is bounded, but deep."""
from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

_STACK_FRAMES = 40_000


@contextmanager
def deep_recursion() -> Generator[None]:
    """Some 25 frames a level for trees as deep as the parser gives, 200 for nested loops and branches."""
    old = sys.getrecursionlimit()
    if old >= _STACK_FRAMES:
        yield
        return
    sys.setrecursionlimit(_STACK_FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(old)

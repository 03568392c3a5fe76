"""Python's search for cyclic garbage, put off while many values are made that all stay."""
from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collection_put_off() -> Generator[None]:
    """Each search walks over everything that is alive and finds nothing: a tenth of the time of compiling.

    Threads that overlap end as they began: of those within, only ones that found it on turn it on again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

"""K04xx: ownership, borrows and memory spaces."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0403", "operands in different memory spaces",
     "A tensor lives in one memory space, and an operation takes its operands from one. Move one of them "
     "with `to_device`, `to_host`, `pin`, `unify` or `to_remote`."),
)

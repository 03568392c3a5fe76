"""What stops a launch."""
from __future__ import annotations


class Stop(Exception):
    """What a program may not do; says it in a clause."""

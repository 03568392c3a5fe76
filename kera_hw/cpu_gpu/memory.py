"""Memory for code: written first, then made executable, and never both."""
from __future__ import annotations

import ctypes
import mmap
import platform

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_COHERENT = ("x86_64", "AMD64")
"""Processors that see by themselves what was written as data run as code."""
LIBGCC, CLEAR = "libgcc_s.so.1", "__clear_cache"
"""What makes the others see it."""


class CodeMemory:
    """Pages with code, as long as this is referred to: also while the interpreter ends, since what it calls
    then, and threads that it leaves running, may be there. ``address`` is where it begins."""

    def __init__(self, code: bytes) -> None:
        size_bytes = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
        pages = mmap.mmap(-1, size_bytes, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        pages.write(code)
        view = ctypes.c_char.from_buffer(pages)
        self.address = ctypes.addressof(view)
        del view
        if _LIBC.mprotect(self.address, size_bytes, mmap.PROT_READ | mmap.PROT_EXEC) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        if platform.machine() not in _COHERENT:
            clear = getattr(ctypes.CDLL(LIBGCC), CLEAR)
            clear(ctypes.c_void_p(self.address), ctypes.c_void_p(self.address + size_bytes))
        self._pages = pages

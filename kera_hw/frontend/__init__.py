"""From source text to a graph."""

from __future__ import annotations

from kera_hw.frontend.compile import Frontend, Given, compile_source

__all__ = ["Frontend", "Given", "compile_source"]

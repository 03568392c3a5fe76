"""Meaning: names, types, and lowering of the typed tree to the graph.

``check`` makes the typed tree (``hir.CheckedProgram``) of a parsed file and what it imports.
"""
from __future__ import annotations

from kera_hw.frontend.sema.check import check

__all__ = ["check"]

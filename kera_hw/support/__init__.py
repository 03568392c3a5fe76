"""Foundations every other layer stands on: sources, spans, diagnostics, hashing, graph order."""
from kera_hw.support.codes import CODES, LINTS, CodeInfo
from kera_hw.support.collection import collection_put_off
from kera_hw.support.diagnostic import Diagnostic, Diagnostics, Fix, Label, Severity
from kera_hw.support.error import KeraError
from kera_hw.support.hashing import Encoder, content_hash
from kera_hw.support.recursion import deep_recursion
from kera_hw.support.render import render_diagnostic, render_diagnostics
from kera_hw.support.source import SourceFile, Span
from kera_hw.support.toposort import CycleError, toposort

__all__ = [
    "CODES",
    "LINTS",
    "CodeInfo",
    "CycleError",
    "Diagnostic",
    "Diagnostics",
    "Encoder",
    "Fix",
    "KeraError",
    "Label",
    "Severity",
    "SourceFile",
    "Span",
    "collection_put_off",
    "content_hash",
    "deep_recursion",
    "render_diagnostic",
    "render_diagnostics",
    "toposort",
]

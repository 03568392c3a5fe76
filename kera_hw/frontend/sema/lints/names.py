"""Lints on names: what is declared and never used, and `mut` that nothing needs.

A name that begins with `_` says that it is not used on purpose.
"""
from __future__ import annotations

import re
from collections.abc import Iterator

from kera_hw.frontend.sema.tree.usage import Declared, DeclaredItem, Usage
from kera_hw.support import Diagnostic, Fix, Severity, SourceFile, Span

_MUT = re.compile(rb"\bmut[ \t\r\n]+$")
#: What follows the code of a name's lint depends on what the name is.
_ITEM_CODES = {"function": "K0253", "stream": "K0253", "constant": "K0254", "struct": "K0256",
               "type": "K0256", "import": "K0255"}


def lint_names(usage: Usage, root: SourceFile) -> Iterator[Diagnostic]:
    """Warnings about names of the root file."""
    reachable = usage.reachable()
    for item in usage.items:
        used = item.name in usage.imports if item.kind == "import" else item.name in reachable
        if not used and not item.name.startswith("_"):
            yield _unused_item(root, item)
    for name in usage.unread():
        if name.file is root and not name.name.startswith("_"):
            yield _unused(usage, name)
    for name in usage.never_written():
        # One that is not read either has been reported, and goes altogether.
        if name.file is root and (root.path, name.span) in usage.read:
            yield _needless_mut(name)


def _warning(
    code: str, message: str, file: SourceFile, span: Span, fix: Fix | None = None,
) -> Diagnostic:
    return Diagnostic(code, message, file, span, fix=fix, severity=Severity.WARNING)


def _unused_item(root: SourceFile, item: DeclaredItem) -> Diagnostic:
    if item.kind == "import":
        fix = Fix("remove it", item.whole, "", safe=True)
        return _warning("K0255", f"The import of `{item.name}` is never used.", root, item.whole, fix)
    fix = Fix(f"remove it, or export it with `pub`; `_{item.name}` says that it is kept on purpose")
    code = _ITEM_CODES[item.kind]
    return _warning(code, f"The {item.kind} `{item.name}` is never used.", root, item.span, fix)


def _unused(usage: Usage, name: Declared) -> Diagnostic:
    code = {"parameter": "K0251", "constant": "K0254"}.get(name.role, "K0250")
    what = "compile-time size" if name.role == "size" else name.role
    if (name.file.path, name.span) in usage.written:
        fix = Fix(f"remove it, or call it `_{name.name}` to keep it on purpose")
        message = f"The {what} `{name.name}` is assigned, but never read."
        return _warning(code, message, name.file, name.span, fix)
    start = Span(name.span.start, name.span.start)
    if name.role == "loop variable":
        fix = Fix("write `_`", name.span, "_", safe=True)
        return _warning(code, f"The loop variable `{name.name}` is never used.", name.file, name.span, fix)
    fix = Fix(f"call it `_{name.name}` if that is intended", start, "_", safe=not name.elsewhere)
    return _warning(code, f"The {what} `{name.name}` is never used.", name.file, name.span, fix)


def _needless_mut(name: Declared) -> Diagnostic:
    found = _MUT.search(name.file.data, max(0, name.span.start - 200), name.span.start)
    span = Span(found.start(), name.span.start) if found else name.span
    fix = Fix("remove `mut`", span, "", safe=True) if found else None
    where = Span(span.start, span.start + 3) if found else span
    return _warning("K0252", f"`{name.name}` need not be `mut`: it is never assigned.", name.file, where, fix)

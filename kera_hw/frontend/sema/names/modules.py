"""Files and the items they declare; imports."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from kera_hw.frontend.parser import parse
from kera_hw.frontend.sema.names.scope import ItemSymbol, Module, closest
from kera_hw.frontend.syntax import ast
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Diagnostic, Diagnostics, Fix, Label, Severity, SourceFile, Span


def declare(module: Module, report: Callable[..., None]) -> Module:
    """Enter the items of a module's file by name; a second one of a name is K0202."""
    for node in module.unit.items:
        if isinstance(node, ast.Error):
            module.lost_names.update(
                leaf.text for leaf in node.node.leaves() if leaf.kind is SyntaxKind.IDENT
            )
        token = node.name_token
        if token is None or isinstance(node, (ast.TestItem, ast.Error)):
            continue
        first = module.items.get(token.text)
        if first is not None:
            report(
                module.file, "K0202", f"`{token.text}` is declared twice in this file.", token.span,
                (Label(first.name_span, "it is declared here first"),),
            )
            continue
        module.items[token.text] = ItemSymbol(module, token.text, node)
    return module


class Reader(Protocol):
    """Who reads files, and hears what is wrong with them."""

    @property
    def diagnostics(self) -> Diagnostics: ...

    def report(
        self, file: SourceFile, code: str, message: str, span: Span, labels: tuple[Label, ...] = (),
        fix: Fix | None = None, notes: tuple[str, ...] = (), severity: Severity = Severity.ERROR,
    ) -> None: ...

    def note_syntax(
        self, file: SourceFile, unit: ast.SourceUnit, diagnostics: Iterable[Diagnostic],
    ) -> None: ...


class Modules:
    """The modules read so far; each is read once."""

    def __init__(self, reader: Reader, load: Callable[[str], SourceFile | None]) -> None:
        self._reader = reader
        self._load = load
        self._read: dict[str, Module | None] = {}

    def item(self, module: Module, name: str) -> ItemSymbol | None:
        """An item of the module by name, imports followed; None also for a reported import."""
        symbol = module.items.get(name)
        return (
            symbol if symbol is None or not isinstance(symbol.node, ast.UseItem) else self._imported(symbol)
        )

    def _imported(self, symbol: ItemSymbol) -> ItemSymbol | None:
        if symbol.resolved is None:
            if symbol.resolving:
                self._reader.report(
                    symbol.module.file, "K0207", f"The import of `{symbol.name}` leads back to itself.",
                    symbol.name_span,
                )
                return None
            symbol.resolving = True
            found = self._target(symbol)
            symbol.resolving = False
            # A module, and an import that failed, stand for themselves.
            symbol.resolved = found if found is not None else symbol
        return symbol.resolved

    def _target(self, symbol: ItemSymbol) -> ItemSymbol | None:
        assert isinstance(symbol.node, ast.UseItem)
        path, file = symbol.node.path, symbol.module.file
        segments = path.segments if path else []
        if len(segments) != 2:
            if len(segments) == 1:
                symbol.is_module = self.module(file, segments[0].text, segments[0].span) is not None
            elif path is not None:
                self._reader.report(
                    file, "K0203", "Modules do not nest: write `use module::name;`.", path.span
                )
            return None
        module = self.module(file, segments[0].text, segments[0].span)
        if module is None:
            return None
        return self.member(file, module, segments[1].text, segments[1].span)

    def module(self, file: SourceFile, name: str, span: Span) -> Module | None:
        """The module of a name, read on first use; None (reported) when there is none."""
        if name not in self._read:
            source = self._load(name)
            self._read[name] = None if source is None else self._parse(name, source)
        found = self._read[name]
        if found is None:
            self._reader.report(
                file,
                "K0203",
                f"There is no module `{name}`: neither a file {name}.kera beside this one nor a "
                "module of the standard library.",
                span,
            )
        return found

    def _parse(self, name: str, source: SourceFile) -> Module:
        unit, diagnostics = parse(source)
        self._reader.diagnostics.extend(diagnostics)
        self._reader.note_syntax(source, unit, diagnostics)
        return declare(Module(name, source, unit), self._reader.report)

    def member(self, file: SourceFile, module: Module, name: str, span: Span) -> ItemSymbol | None:
        """An item of a module from outside; None (reported) when it has none of that name."""
        if name in module.items:
            return self.item(module, name)
        meant = closest(name, list(module.items))
        tail = f"; did you mean `{meant}`?" if meant else "."
        fix = Fix(f"use `{meant}`", span, meant) if meant else None
        self._reader.report(
            file, "K0204", f"The module `{module.name}` declares no `{name}`{tail}", span, (), fix,
        )
        return None

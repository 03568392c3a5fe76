"""The checker of a whole program: modules, items on demand, instances of functions, their order."""
from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

from kera_hw.frontend.sema.constants.plain import MAX_CONSTANT_ELEMENTS, element_count, plain_value
from kera_hw.frontend.sema.constants.work import MAX_CONSTANT_WORK, work
from kera_hw.frontend.sema.names.modules import Modules
from kera_hw.frontend.sema.names.scope import Constant, ItemSymbol, Module
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.usage import Usage
from kera_hw.frontend.sema.typing.context import Context, Instance, Shared
from kera_hw.frontend.sema.typing.types import product_type, resolve_type
from kera_hw.frontend.sema.typing.unify import ERROR, has_error
from kera_hw.frontend.syntax import ast
from kera_hw.support import (
    Diagnostic,
    Diagnostics,
    Fix,
    KeraError,
    Label,
    Severity,
    SourceFile,
    Span,
)
from kera_hw.types import StructType, Type

#: How many definitions may wait for each other to be resolved, and how many instances a program may have.
MAX_CHAIN = 200
MAX_INSTANCES = 4_000
#: Gives a module's file by name, None when there is no such module.
Load = Callable[[str], SourceFile | None]
#: Gives the value of a constant expression by the reference semantics; may raise KeraError.
Evaluate = Callable[[hir.Expr, SourceFile], Any]


class Checker:
    """State of one check. Items resolve when first needed and are kept."""

    def __init__(self, root: Module, load: Load, evaluate: Evaluate, check_body: Callable[[Instance], None],
                 sign: Callable[[Checker, ItemSymbol, tuple[int, ...]], hir.Function]) -> None:
        self.root = root
        self.diagnostics = Diagnostics()
        self.modules = Modules(self, load)
        self.instances: dict[tuple[ItemSymbol, tuple[int, ...]], Instance] = {}
        self.queue: list[Instance] = []
        self.names_only = False
        self.usage = Usage()
        self.evaluated: list[tuple[hir.Expr, SourceFile]] = []
        self._unsound: dict[str, list[tuple[int, int]]] = {}
        self._reported: set[tuple[str, str, Span]] = set()
        self._depth = 0
        self._evaluate = evaluate
        self._check_body = check_body
        self._sign = sign

    # -- reports ---------------------------------------------------------------------------------

    def report(
        self, file: SourceFile, code: str, message: str, span: Span, labels: tuple[Label, ...] = (),
        fix: Fix | None = None, notes: tuple[str, ...] = (), severity: Severity = Severity.ERROR,
    ) -> None:
        if self.names_only and not code.startswith("K02"):
            return
        # What rests on an item with syntax mistakes may be their echo.
        concerned = [span, *(label.span for label in labels if label.file is None)]
        unsound = self._unsound.get(file.path, ())
        if any(start <= place.start <= end for place in concerned for start, end in unsound):
            return
        # Instances of one generic function repeat its mistakes, with other types in the message.
        key = (code, file.path, span)
        if key in self._reported:
            return
        self._reported.add(key)
        self.diagnostics.add(Diagnostic(code, message, file, span, labels, notes, fix, severity))

    def note_syntax(
        self, file: SourceFile, unit: ast.SourceUnit, diagnostics: Iterable[Diagnostic],
    ) -> None:
        """Keep quiet about the items in which the parser found a mistake: what follows from it is noise."""
        places = [item.span.start for item in diagnostics if item.is_error and item.span is not None]
        if places:
            spans = [(node.span.start, node.span.end) for node in unit.items]
            self._unsound[file.path] = [
                (start, end) for start, end in spans if any(start <= place <= end for place in places)
            ]

    # -- names -------------------------------------------------------------------------------------

    def item(self, module: Module, name: str) -> ItemSymbol | None:
        """The item of a module, imports followed."""
        return self.modules.item(module, name)

    def module(self, file: SourceFile, name: str, span: Span, shared: Shared) -> Module | None:
        """The module of a name; counts an error in ``shared`` when there is none."""
        found = self.modules.module(file, name, span)
        shared.errors += found is None
        return found

    def member(
        self, file: SourceFile, module: Module, name: str, span: Span, shared: Shared,
    ) -> ItemSymbol | None:
        """An item of another module; counts an error in ``shared`` when there is none."""
        found = self.modules.member(file, module, name, span)
        shared.errors += found is None
        return found

    def note_use(self, owner: ItemSymbol | None, module: Module, name: str, found: ItemSymbol) -> None:
        """The text of ``owner`` (None: of a test) names an item of its module."""
        if module is self.root and isinstance(module.items[name].node, ast.UseItem):
            self.usage.imports.add(name)
        if found.module is self.root and (owner is None or owner.module is self.root):
            self.usage.uses("" if owner is None else owner.name, found.name)

    # -- items ---------------------------------------------------------------------------------------

    def context(self, symbol: ItemSymbol) -> Context:
        """A fresh context at the top level of the item's module."""
        return Context(Shared(self, symbol.module, item=symbol))

    def named_type(self, symbol: ItemSymbol) -> Type:
        """The type of a struct or alias item."""
        if symbol.resolved is not None:
            return symbol.resolved
        if symbol.resolving:
            self.report(
                symbol.module.file, "K0207", f"The type `{symbol.name}` contains itself.", symbol.name_span,
            )
            return ERROR
        with self._deeper(symbol) as room:
            context, node = self.context(symbol), symbol.node
            if not room:
                symbol.resolved = ERROR
            elif isinstance(node, ast.StructItem):
                symbol.resolved = self._struct(context, symbol, node)
            else:
                assert isinstance(node, ast.TypeAliasItem)
                symbol.resolved = resolve_type(context, node.type)
        return symbol.resolved

    @contextmanager
    def _deeper(self, symbol: ItemSymbol, resolving: bool = True) -> Generator[bool]:
        """Resolve a definition inside the resolution of others; False (reported) when they are too many."""
        before, symbol.resolving = symbol.resolving, resolving
        self._depth += 1
        if self._depth > MAX_CHAIN:
            self.report(
                symbol.module.file,
                "K0207",
                f"More than {MAX_CHAIN} definitions wait for `{symbol.name}`; declare "
                "them in the order of their use.",
                symbol.name_span,
            )
        try:
            yield self._depth <= MAX_CHAIN
        finally:
            self._depth -= 1
            symbol.resolving = before

    def _struct(self, context: Context, symbol: ItemSymbol, node: ast.StructItem) -> Type:
        fields: dict[str, Type] = {}
        for item in node.fields:
            token = item.name_token
            if token is None:
                continue
            if token.text in fields:
                context.report(
                    "K0202", f"The struct `{symbol.name}` has a field `{token.text}` already.", token.span,
                )
                continue
            fields[token.text] = resolve_type(context, item.type)
        if any(has_error(item) for item in fields.values()):
            # Uses of the struct stay silent, but the names of its fields are known.
            return ERROR
        return product_type(context, StructType(symbol.qualified, tuple(fields.items())), symbol.name_span)

    def constant(self, symbol: ItemSymbol) -> Constant | None:
        """The value of a const item; None when it has none (reported)."""
        if symbol.resolved is not None:
            return symbol.resolved or None
        if symbol.resolving:
            self.report(
                symbol.module.file, "K0207", f"The value of the constant `{symbol.name}` depends on itself.",
                symbol.name_span,
            )
            return None
        node = symbol.node
        assert isinstance(node, ast.ConstItem)
        with self._deeper(symbol) as room:
            found = self.constant_item(self.context(symbol), node) if room else None
        symbol.resolved = found if found is not None else False
        return found

    @staticmethod
    def constant_item(context: Context, node: ast.ConstItem) -> Constant | None:
        """Evaluate a const item where it stands."""
        wanted = resolve_type(context, node.type) if node.type is not None else None
        if node.value is None:
            return None
        found = context.evaluate(node.value, wanted)
        if found is None or wanted is None or has_error(wanted):
            return None
        token = node.name_token
        return Constant(node.name or "", found.type, found.value, token.span if token else node.span)

    def constant_value(
        self, context: Context, tree: hir.Expr, calls: Iterable[tuple[Instance, Span]],
    ) -> Any:
        """The value of a checked constant expression; None when something was reported."""
        count = element_count(tree.type)
        if count > MAX_CONSTANT_ELEMENTS:
            context.report(
                "K0214",
                f"A constant of {count} elements is too large; the limit is {MAX_CONSTANT_ELEMENTS}.",
                tree.span,
            )
            return None
        known = plain_value(tree)
        if known is not None:
            return known
        if not self.complete(context, calls):
            return None
        steps = work(tree)
        if steps > MAX_CONSTANT_WORK:
            context.report(
                "K0214", f"This constant would take up to {steps} operations at compile time; the limit is "
                f"{MAX_CONSTANT_WORK}.", tree.span,
            )
            return None
        self.evaluated.append((tree, context.file))
        try:
            return self._evaluate(tree, context.file)
        except KeraError as error:
            context.shared.errors += 1
            for item in error.diagnostics:
                self.report(
                    item.file or context.file, item.code, item.message, item.span or tree.span, item.labels,
                    item.fix, item.notes, item.severity,
                )
            return None

    def complete(self, context: Context, calls: Iterable[tuple[Instance, Span]]) -> bool:
        """Check all that the calls reach, so that they can be evaluated; False when reported."""
        seen: set[Instance] = set()
        stack = list(calls)
        while stack:
            instance, span = stack.pop()
            if instance in seen:
                continue
            seen.add(instance)
            if instance.status == "checking":
                context.report(
                    "K0207",
                    f"This value depends on `{instance.symbol.name}`, in whose body it stands.",
                    span,
                )
                return False
            self._check(instance)
            if not instance.ok:
                context.shared.errors += 1
                return False
            stack.extend(instance.calls)
        return True

    # -- instances -----------------------------------------------------------------------------------

    def instance(
        self, context: Context | None, symbol: ItemSymbol, sizes: tuple[int, ...], span: Span,
    ) -> Instance | None:
        """The instance of a function or stream, made when first asked for; None (reported) for
        recursion, or when the signature needs itself."""
        key = (symbol, sizes)
        owner = context.shared.owner if context is not None else None
        found = self.instances.get(key)
        if found is None:
            if context is not None and self._recursive(context, symbol, span):
                return None
            if symbol.resolving:
                self.report(
                    symbol.module.file, "K0207", f"The signature of `{symbol.name}` depends on itself.",
                    symbol.name_span,
                )
                return None
            if len(self.instances) >= MAX_INSTANCES:
                self.report(
                    symbol.module.file,
                    "K0314",
                    f"The program asks for more than {MAX_INSTANCES} functions and "
                    "instances of generic ones.",
                    symbol.name_span,
                )
                return None
            with self._deeper(symbol) as room:
                if not room:
                    return None
                found = Instance(self, symbol, sizes, self._sign(self, symbol, sizes), owner)
            found.signed = found.ok = not _signature_broken(found.function)
            self.instances[key] = found
            self.queue.append(found)
        if context is not None:
            context.shared.calls.append((found, span))
        return found

    def _recursive(self, context: Context, symbol: ItemSymbol, span: Span) -> bool:
        chain: list[str] = []
        owner = context.shared.owner
        while owner is not None:
            chain.append(owner.symbol.name)
            if owner.symbol is symbol:
                path = " → ".join(f"`{name}`" for name in [*reversed(chain), symbol.name])
                context.report("K0206", f"Recursion is not possible: {path}.", span)
                return True
            owner = owner.parent
        return False

    def drain(self) -> None:
        """Check every body asked for so far, and what those ask for."""
        while self.queue:
            self._check(self.queue.pop(0))

    def _check(self, instance: Instance) -> None:
        if instance.status != "new":
            return
        instance.status = "checking"
        # A body is checked inside another where a constant there calls the function.
        with self._deeper(instance.symbol, resolving=False) as room:
            if room:
                self._check_body(instance)
            else:
                instance.ok = False
        instance.status = "done"


def _signature_broken(function: hir.Function) -> bool:
    return has_error(function.result) or any(has_error(param.var.type) for param in function.params)

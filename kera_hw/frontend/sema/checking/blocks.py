"""Blocks and statements."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from kera_hw.frontend.sema.checking.calls import assertion
from kera_hw.frontend.sema.checking.index import check_mutable, place
from kera_hw.frontend.sema.checking.loops import for_statement
from kera_hw.frontend.sema.checking.operators import binary
from kera_hw.frontend.sema.checking.patterns import bind_pattern
from kera_hw.frontend.sema.checking.while_bounds import bounded_loop, while_bound
from kera_hw.frontend.sema.names.scope import Broken, Held, ItemSymbol, Local
from kera_hw.frontend.sema.tree import hir
from kera_hw.frontend.sema.tree.usage import Declared
from kera_hw.frontend.sema.typing.context import Context, Value, is_poison, poison, rule
from kera_hw.frontend.sema.typing.linear import stable_form
from kera_hw.frontend.sema.typing.paths import find
from kera_hw.frontend.sema.typing.types import resolve_type, size_argument
from kera_hw.frontend.sema.typing.unify import ERROR, describe, has_error, resolve, shallow
from kera_hw.frontend.syntax import ast
from kera_hw.support import Span
from kera_hw.types import BOOL, UNIT

#: Makes the statement; None when something was reported or there is nothing to do.
BuildStmt = Callable[[], hir.Stmt | None]


@rule(ast.Block)
def _block(ctx: Context, node: ast.Block) -> Value:
    return block(ctx, node)


def block(ctx: Context, node: ast.Block, role: str = "") -> Value:
    """Walk a block in a scope of its own; ``role`` is "fn", "stream" or "test" for the body of an item.

    The value's span is its final expression's, where a wrong type shows; the tree's is the whole block.
    """
    whole = node.span
    allowed, ctx.state_ok = ctx.state_ok, role == "stream"
    with ctx.block():
        statements = node.statements
        tail: ast.Expr | None = node.tail
        last = statements[-1] if statements else None
        returns = tail is None and isinstance(last, ast.ReturnStmt)
        if role and tail is None and isinstance(last, ast.ReturnStmt):
            statements, tail = statements[:-1], last.value
        steps = [_statement(ctx, statement) for statement in statements]
        dropped = ctx.shared.last_value if tail is None else None
        ctx.state_ok = False
        asserted = assertion(ctx, tail) if tail is not None else None
        if asserted is not None:
            steps.append(asserted)
            tail = None
        value = ctx.expr(tail) if tail is not None else None
    ctx.state_ok = allowed

    def build() -> hir.Expr:
        stmts = [step() for step in steps]
        result = value.build() if value is not None else None
        if result is not None and is_poison(result):
            return poison(whole)
        kind = result.type if result is not None else UNIT
        return hir.Block(kind, whole, tuple(stmt for stmt in stmts if stmt is not None), result)

    if value is None:
        if returns and not role:  # reported by the parser
            return Value(ERROR, whole, build)
        end = Span(whole.end - 1, whole.end) if statements and whole.length_bytes else whole
        return Value(UNIT, end, build, dropped=dropped)
    return Value(value.type, value.span, build, dropped=value.dropped)


def body_block(made: hir.Expr) -> hir.Block:
    """The tree of a block, also where it is poison."""
    return made if isinstance(made, hir.Block) else hir.Block(made.type, made.span, (), made)


def _statement(ctx: Context, node: ast.Stmt) -> BuildStmt:
    ctx.shared.last_value = None
    rule_of = _STATEMENTS.get(type(node))
    if rule_of is None:
        ctx.shared.errors += 1
        return lambda: None
    return rule_of(ctx, node)


def _let(ctx: Context, node: ast.LetStmt) -> BuildStmt:
    written, given, bound, span = node.type, node.value, node.pattern, node.span
    wanted = resolve_type(ctx, written) if written is not None else None
    value = ctx.expr(given, span)
    kind = value.type
    if wanted is not None:
        because = [(written.span, "because of this type")] if written is not None else []
        ctx.expect(value, wanted, because)
        kind = wanted
    linear = stable_form(ctx, given) if isinstance(bound, ast.NamePattern) else None
    pattern = bind_pattern(ctx, bound, kind, span, linear)

    def build() -> hir.Stmt | None:
        made = value.build()
        if is_poison(made) or pattern is None:
            return None
        stmt = hir.Let(span, pattern, made)
        ctx.known.record(stmt)
        return stmt

    return build


def _assign(ctx: Context, node: ast.AssignStmt) -> BuildStmt:
    target = place(ctx, node.target)
    if target is None:
        ctx.expr(node.value, node.span)
        return lambda: None
    operator = node.binary_op
    if operator is None:
        value = ctx.expr(node.value, node.span)
    else:
        token = node.op_token
        value = binary(
            ctx, operator, target.read(), node.value, node.span, token.span if token else node.span,
            kept=True,
        )
        if shallow(value.type) is not ERROR and node.value is not None:
            value = Value(value.type, node.value.span, value.build)
    check_mutable(ctx, target)
    ctx.expect(value, target.type, [(target.span, f"this is {describe(target.type)}")])

    def build() -> hir.Stmt | None:
        before = target.build_twice() if operator is not None else ()
        where, made = target.build(), value.build()
        if where is None or before is None or is_poison(made):
            return None
        assign = hir.Assign(node.span, where, made)
        if not before:
            return assign
        return hir.ExprStmt(node.span, hir.Block(UNIT, node.span, (*before, assign), None))

    return build


def _expression(ctx: Context, node: ast.ExprStmt) -> BuildStmt:
    if node.expr is None:
        return lambda: None
    asserted = assertion(ctx, node.expr)
    if asserted is not None:
        return asserted
    value = ctx.expr(node.expr)
    ctx.shared.last_value = None
    if node.has_semicolon:
        ctx.checker.usage.statements.add((ctx.file.path, node.span))
        if shallow(value.type) not in (UNIT, ERROR):
            ctx.shared.last_value = value.type, Span(node.span.end - 1, node.span.end)
    else:
        ctx.expect(value, UNIT)

    def build() -> hir.Stmt | None:
        made = value.build()
        return None if is_poison(made) else hir.ExprStmt(node.span, made)

    return build


def _return(ctx: Context, node: ast.ReturnStmt) -> BuildStmt:
    ctx.shared.errors += 1  # the parser has reported one that is not the last statement
    if node.value is not None:
        ctx.expr(node.value)
    return lambda: None


def _for(ctx: Context, node: ast.ForStmt) -> BuildStmt:
    head = for_statement(ctx, node)
    body = _loop_body(ctx, node.body, head.local)

    def build() -> hir.Stmt | None:
        found = head.settle(ctx)
        if found is None:
            body()
            return None
        (start, step, count), condition = found
        empty = hir.Block(UNIT, node.span, (), None)
        ctx.known.loops.append(hir.For(node.span, head.var, start, step, count, empty))
        with ctx.guarded(condition, True) if condition is not None else nullcontext():
            made = body()
        ctx.known.loops.pop()
        if made is None:
            return None
        if condition is not None:
            inner = hir.If(UNIT, made.span, condition, made, None)
            made = hir.Block(UNIT, made.span, (hir.ExprStmt(made.span, inner),), None)
        return hir.For(node.span, head.var, start, step, count, made)

    return build


def _while(ctx: Context, node: ast.WhileStmt) -> BuildStmt:
    condition = ctx.expr(node.condition, node.span)
    ctx.expect(condition, BOOL)
    bound = while_bound(ctx, node.bound)
    body = _loop_body(ctx, node.body, None)

    def build() -> hir.Stmt | None:
        most = bound if isinstance(bound, int) else bound.settle(ctx) if bound is not None else None
        cond, made = condition.build(), body()
        if is_poison(cond) or made is None or most is None:
            return None
        if isinstance(most, int):
            return hir.While(node.span, cond, most, made)
        return bounded_loop(node.span, cond, made, most)

    return build


def _loop_body(ctx: Context, node: ast.Block | None, local: Local | None) -> Callable[[], hir.Block | None]:
    if node is None:
        ctx.shared.errors += 1
        return lambda: None
    with ctx.block():
        if local is not None:
            ctx.declare(local)
        body = block(ctx, node)
    ctx.expect(body, UNIT)

    def build() -> hir.Block | None:
        made = body.build()
        return None if is_poison(made) else body_block(made)

    return build


def _const(ctx: Context, node: ast.ConstItem) -> BuildStmt:
    found = ctx.checker.constant_item(ctx, node)
    token = node.name_token
    if token is not None:
        ctx.scopes.declare(token.text, found if found is not None else Broken(token.span))
        ctx.shared.declared.append(Declared(token.text, ctx.file, token.span, "constant"))
    ctx.shared.errors += found is None
    return lambda: None


def _state(ctx: Context, node: ast.StateStmt) -> BuildStmt:
    token = node.name_token
    if not ctx.state_ok:
        ctx.report("K0213", "`state` can only stand at the top level of a stream's body.", node.span)
    if token is None:
        ctx.shared.errors += 1
        return lambda: None
    earlier = ctx.scopes.levels[-1].get(token.text)
    if isinstance(earlier, Held) or (isinstance(earlier, Local) and earlier.role == "state"):
        ctx.report("K0202", f"The state `{token.text}` is declared twice.", token.span,
                   labels=[(earlier.var.span, "it is declared here first")])
    if node.init is None:
        _stream_state(ctx, node, token.text, token.span)
        return lambda: None
    wanted = resolve_type(ctx, node.type) if node.type is not None else None
    initial = ctx.evaluate(node.init, wanted)
    kind = wanted or (initial.type if initial is not None else ERROR)
    var = ctx.new_var(token.text, kind, token.span, mutable=True)
    ctx.declare(Local(var, "state"))
    if initial is not None and not has_error(kind):
        ctx.states.append((var, hir.Const(resolve(kind), node.init.span, initial.value)))
    else:
        ctx.shared.errors += 1
    return lambda: None


def _stream_state(ctx: Context, node: ast.StateStmt, name: str, span: Span) -> None:
    """`state f: fir;`"""
    held = None
    kind = node.type
    path = kind.path if isinstance(kind, ast.NameType) else None
    symbol = ctx.item(path.name or "") if path and not path.is_qualified else None
    if path is not None and path.is_qualified:
        found = find(ctx, path)
        symbol = found if isinstance(found, ItemSymbol) else None
    if symbol is not None and isinstance(symbol.node, ast.StreamItem) and isinstance(kind, ast.NameType):
        sizes = [size_argument(ctx, arg) for arg in kind.args]
        expected = len(symbol.node.size_params)
        if len(sizes) != expected:
            takes = f"`{symbol.name}` takes {expected} compile-time size{'s' * (expected != 1)}"
            example = f"{symbol.name}::<{', '.join(['8'] * expected)}>"
            hint = f", as in `{example}`" if expected and not sizes else ""
            ctx.report("K0314", f"{takes}, and here are {len(sizes)}{hint}.", kind.span)
        elif all(size is not None for size in sizes):
            held = ctx.checker.instance(ctx, symbol, tuple(size or 0 for size in sizes), kind.span)
    elif kind is not None:
        known = resolve_type(ctx, kind) if symbol is None or not isinstance(symbol.node, ast.FnItem) else None
        if known is None or not has_error(known):
            ctx.report("K0213", "A state needs an initial value, unless its type is the name of a stream.",
                       node.span)
    if held is None:
        ctx.shared.errors += 1
        ctx.scopes.declare(name, Broken(span))
        return
    var = hir.Var(name, UNIT, True, span)
    ctx.scopes.declare(name, Held(var, held))
    ctx.shared.declared.append(Declared(name, ctx.file, span, "state"))
    ctx.instances.append(hir.Instance(var, held.function))


_STATEMENTS: dict[type[ast.Stmt], Callable[[Context, Any], BuildStmt]] = {
    ast.LetStmt: _let,
    ast.AssignStmt: _assign,
    ast.ExprStmt: _expression,
    ast.ReturnStmt: _return,
    ast.ForStmt: _for,
    ast.WhileStmt: _while,
    ast.ConstItem: _const,
    ast.StateStmt: _state,
}

"""Typed views of blocks, the expressions made of blocks, and statements."""
from __future__ import annotations

from kera_hw.frontend.syntax.ast_base import Ast, Error, Expr, Pattern, Stmt, Type
from kera_hw.frontend.syntax.ast_patterns import NamePattern
from kera_hw.frontend.syntax.kinds import ASSIGN_KINDS
from kera_hw.frontend.syntax.kinds import SyntaxKind as K
from kera_hw.frontend.syntax.red import SyntaxToken

_ASSIGN = tuple(sorted(ASSIGN_KINDS))


class Block(Expr):
    """`{ statements tail }`."""

    __slots__ = ()
    KIND = K.BLOCK

    @property
    def statements(self) -> list[Stmt]:
        """Everything but the final expression, in order (ConstItem included)."""
        return self._children(Stmt)

    @property
    def tail(self) -> Expr | None:
        """The final expression, the block's value; None means the value is `()`."""
        exprs = [expr for expr in self._children(Expr) if not isinstance(expr, Error)]
        return exprs[-1] if exprs else None


class If(Expr):
    """`if condition { .. } else ..`."""

    __slots__ = ()
    KIND = K.IF_EXPR

    @property
    def condition(self) -> Expr | None:
        found = self._before((K.ELSE_KW,), Expr)
        # With the condition missing the first expression is the branch; a block can be a condition
        # only if another one follows it.
        if isinstance(found, Block) and len(self._then_side()) < 2:
            return None
        return found

    @property
    def then_block(self) -> Block | None:
        side = self._then_side()
        last = side[-1] if side else None
        return last if isinstance(last, Block) else None

    @property
    def else_branch(self) -> Expr | None:
        """A Block, or an If for `else if`; None where there is no `else`."""
        return self._after((K.ELSE_KW,), Expr)

    def _then_side(self) -> list[Expr]:
        after = len(self._all_after((K.ELSE_KW,), Expr))
        both = self._children(Expr)
        return both[: len(both) - after]


class Match(Expr):
    """`match scrutinee { arms }`."""

    __slots__ = ()
    KIND = K.MATCH_EXPR

    @property
    def scrutinee(self) -> Expr | None:
        return self._before((K.L_BRACE,), Expr)

    @property
    def arms(self) -> list[MatchArm]:
        return self._children(MatchArm)


class MatchArm(Ast):
    """`pattern => body`."""

    __slots__ = ()
    KIND = K.MATCH_ARM

    @property
    def pattern(self) -> Pattern | None:
        return self._before((K.FAT_ARROW,), Pattern)

    @property
    def body(self) -> Expr | None:
        return self._after((K.FAT_ARROW,), Expr)


class Lambda(Expr):
    """`|x, y| body`."""

    __slots__ = ()
    KIND = K.LAMBDA_EXPR

    @property
    def params(self) -> list[LambdaParam]:
        return self._children(LambdaParam)

    @property
    def body(self) -> Expr | None:
        return self._child(Expr)


class LambdaParam(Ast):
    """`x`, `(a, b)`, `x: u8`."""

    __slots__ = ()
    KIND = K.LAMBDA_PARAM

    @property
    def pattern(self) -> Pattern | None:
        return self._child(Pattern)

    @property
    def name(self) -> str | None:
        """The name where the parameter is a plain one."""
        pattern = self.pattern
        return pattern.name if isinstance(pattern, NamePattern) else None

    @property
    def type(self) -> Type | None:
        return self._after((K.COLON,), Type)


class LetStmt(Stmt):
    """`let pattern: type = value;`."""

    __slots__ = ()
    KIND = K.LET_STMT

    @property
    def pattern(self) -> Pattern | None:
        return self._child(Pattern)

    @property
    def type(self) -> Type | None:
        """The annotation, None where none is written."""
        return self._after((K.COLON,), Type)

    @property
    def value(self) -> Expr | None:
        return self._after((K.EQ,), Expr)


class StateStmt(Stmt):
    """`state z: T = init;`, or `state f: fir;` for an instance of a stream (no ``init``)."""

    __slots__ = ()
    KIND = K.STATE_STMT

    @property
    def name_token(self) -> SyntaxToken | None:
        return self._token(K.IDENT)

    @property
    def name(self) -> str | None:
        token = self.name_token
        return token.text if token else None

    @property
    def type(self) -> Type | None:
        """The type; for an instance a NameType that names the stream."""
        return self._after((K.COLON,), Type)

    @property
    def init(self) -> Expr | None:
        return self._after((K.EQ,), Expr)


class AssignStmt(Stmt):
    """`target = value;` and the compound forms."""

    __slots__ = ()
    KIND = K.ASSIGN_STMT

    @property
    def target(self) -> Expr | None:
        return self._before(_ASSIGN, Expr)

    @property
    def op_token(self) -> SyntaxToken | None:
        return self._token(*_ASSIGN)

    @property
    def op(self) -> str:
        """`=`, `+=`, `<<=`, ..."""
        token = self.op_token
        return token.text if token else ""

    @property
    def binary_op(self) -> str | None:
        """The operator of a compound assignment (`+` for `+=`), None for `=`."""
        return self.op[:-1] or None

    @property
    def value(self) -> Expr | None:
        return self._after(_ASSIGN, Expr)


class ExprStmt(Stmt):
    """`expr;`, or an `if`, `match` or block that needs no `;`."""

    __slots__ = ()
    KIND = K.EXPR_STMT

    @property
    def expr(self) -> Expr | None:
        return self._child(Expr)

    @property
    def has_semicolon(self) -> bool:
        return self._has(K.SEMICOLON)


class ReturnStmt(Stmt):
    """`return value;`, always the last statement of a function or stream body."""

    __slots__ = ()
    KIND = K.RETURN_STMT

    @property
    def value(self) -> Expr | None:
        return self._child(Expr)


class ForStmt(Stmt):
    """`for i: type in range { .. }`."""

    __slots__ = ()
    KIND = K.FOR_STMT

    @property
    def pattern(self) -> Pattern | None:
        """A NamePattern or WildcardPattern."""
        return self._before((K.IN_KW,), Pattern)

    @property
    def name_token(self) -> SyntaxToken | None:
        """The loop variable's token, None for `_`."""
        pattern = self.pattern
        return pattern.name_token if isinstance(pattern, NamePattern) else None

    @property
    def name(self) -> str | None:
        token = self.name_token
        return token.text if token else None

    @property
    def type(self) -> Type | None:
        """The annotation of the variable, None where none is written."""
        return self._before((K.IN_KW,), Type)

    @property
    def range(self) -> Expr | None:
        """A Range, or MethodCalls `rev` and `step_by` on a parenthesised one."""
        found = self._after((K.IN_KW,), Expr)
        return None if isinstance(found, Block) else found

    @property
    def body(self) -> Block | None:
        blocks = [expr for expr in self._all_after((K.IN_KW,), Expr) if isinstance(expr, Block)]
        return blocks[-1] if blocks else None


class WhileStmt(Stmt):
    """`while condition, max bound { .. }`."""

    __slots__ = ()
    KIND = K.WHILE_STMT

    @property
    def condition(self) -> Expr | None:
        found = self._before((K.COMMA,), Expr)
        return None if found == self.body else found

    @property
    def bound(self) -> Expr | None:
        """The constant after `max`."""
        found = self._after((K.MAX_KW,), Expr)
        return None if found == self.body else found

    @property
    def body(self) -> Block | None:
        exprs = self._children(Expr)
        last = exprs[-1] if exprs else None
        return last if isinstance(last, Block) else None

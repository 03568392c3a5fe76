"""Typed views over the syntax tree: one class per node kind.

Use ``parse`` to get a SourceUnit and walk on with the accessors; ``isinstance`` (or ``match``) tells the
kinds apart, with the abstract Item, Stmt, Expr, Type and Pattern above them. Every accessor gives None,
or a shorter list, where a broken file lacks the part. Tokens carry ``.text`` and ``.span``; views carry
``.span``, ``.text`` and ``.node``.
"""
from __future__ import annotations

from kera_hw.frontend.syntax.ast_atoms import Literal, Path
from kera_hw.frontend.syntax.ast_base import Ast, Error, Expr, Item, Pattern, Stmt, Type, cast
from kera_hw.frontend.syntax.ast_blocks import (
    AssignStmt,
    Block,
    ExprStmt,
    ForStmt,
    If,
    Lambda,
    LambdaParam,
    LetStmt,
    Match,
    MatchArm,
    ReturnStmt,
    StateStmt,
    WhileStmt,
)
from kera_hw.frontend.syntax.ast_exprs import (
    Arg,
    ArgList,
    ArrayLit,
    ArrayRepeat,
    Binary,
    Borrow,
    Call,
    Cast,
    Field,
    Index,
    MethodCall,
    ParenExpr,
    PathExpr,
    Range,
    StructLit,
    StructLitField,
    TupleExpr,
    Unary,
)
from kera_hw.frontend.syntax.ast_items import (
    ConstItem,
    Effect,
    EffectList,
    FnItem,
    Param,
    ParamList,
    SizeParam,
    SizeParamList,
    SourceUnit,
    StreamItem,
    StructField,
    StructItem,
    TestItem,
    TypeAliasItem,
    UseItem,
)
from kera_hw.frontend.syntax.ast_patterns import (
    LiteralPattern,
    NamePattern,
    OrPattern,
    ParenPattern,
    RangePattern,
    TuplePattern,
    WildcardPattern,
)
from kera_hw.frontend.syntax.ast_types import (
    GenericArg,
    GenericArgList,
    NameType,
    ParenType,
    RefType,
    SpaceType,
    TensorType,
    TupleType,
)

__all__ = [
    "Arg", "ArgList", "ArrayLit", "ArrayRepeat", "AssignStmt", "Ast", "Binary", "Block", "Borrow", "Call",
    "Cast", "ConstItem", "Effect", "EffectList", "Error", "Expr", "ExprStmt", "Field", "FnItem", "ForStmt",
    "GenericArg", "GenericArgList", "If", "Index", "Item", "Lambda", "LambdaParam", "LetStmt", "Literal",
    "LiteralPattern", "Match", "MatchArm", "MethodCall", "NamePattern", "NameType", "OrPattern", "Param",
    "ParamList", "ParenExpr", "ParenPattern", "ParenType", "Path", "PathExpr", "Pattern", "Range",
    "RangePattern", "RefType", "ReturnStmt", "SizeParam", "SizeParamList", "SourceUnit", "SpaceType",
    "StateStmt", "Stmt", "StreamItem", "StructField", "StructItem", "StructLit", "StructLitField",
    "TensorType", "TestItem", "TupleExpr", "TuplePattern", "TupleType", "Type", "TypeAliasItem", "Unary",
    "UseItem", "WhileStmt", "WildcardPattern", "cast",
]

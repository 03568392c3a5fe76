"""From types as written to types."""
from __future__ import annotations

import re

from kera_hw.frontend.parser.grammar.foreign_words import scalar_type
from kera_hw.frontend.sema.names.scope import Constant, ItemSymbol, Symbol, closest
from kera_hw.frontend.sema.typing.context import Context
from kera_hw.frontend.sema.typing.paths import constant_of, find
from kera_hw.frontend.sema.typing.unify import ERROR, has_error, shallow
from kera_hw.frontend.syntax import ast
from kera_hw.support import Fix, Span
from kera_hw.types import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    FixType,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
)

_NAMED: dict[str, Type] = {"bool": BOOL, "f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
_INTEGER = re.compile(r"([iu])([0-9]+)")
_TYPE_NAMES = [
    *_NAMED, "fix", "ufix", *(f"{sign}{width}" for sign in "iu" for width in (8, 16, 32, 64)),
]
#: Integers of a width given as an argument, as other languages have them.
_SIZED = re.compile(r"(?:(?:ap|ac|sc)_)?(u?)(?:int|bigint|biguint)|([US])Int|(un)?signed|Bits|bits|bit_vec")
#: More elements than this no tensor has; a limit far beyond memory that keeps arithmetic on sizes small.
MAX_ELEMENTS = 1 << 40
#: The most axes, those within its elements included: arrays of NumPy have a limit, and a batch adds one.
MAX_AXES = 24


#: More scalars and tensors than this no struct or tuple holds, however nested.
MAX_LEAVES = 4096
MAX_TYPE_DEPTH = 64


def is_too_wide(kind: Type) -> bool:
    """Whether a product type has more than MAX_LEAVES leaves or nests deeper than MAX_TYPE_DEPTH; looks at
    no more than it needs to tell."""
    left, stack = MAX_LEAVES, [(kind, 0)]
    while stack and left >= 0:
        item, depth = stack.pop()
        item = shallow(item)
        if depth > MAX_TYPE_DEPTH:
            return True
        if isinstance(item, TensorType):
            stack.append((item.element, depth))
        elif isinstance(item, (TupleType, StructType)):
            parts = item.items if isinstance(item, TupleType) else [part for _, part in item.fields]
            stack.extend((part, depth + 1) for part in parts)
            left -= not parts
        else:
            left -= 1
    return left < 0


def product_type(ctx: Context, made: Type, span: Span) -> Type:
    """The type, unless it is too wide (reported) or has parts that were."""
    if has_error(made):
        return ERROR
    if is_too_wide(made):
        ctx.report(
            "K0319",
            f"A type holds at most {MAX_LEAVES} numbers and tensors, nested at most {MAX_TYPE_DEPTH} deep.",
            span,
        )
        return ERROR
    return made


def resolve_type(ctx: Context, node: ast.Type | None) -> Type:
    """The type of a node; ERROR (reported here or by the parser) where it means none."""
    if isinstance(node, ast.NameType):
        return _name_type(ctx, node)
    if isinstance(node, ast.TensorType):
        return _tensor_type(ctx, node)
    if isinstance(node, ast.TupleType):
        return product_type(
            ctx, TupleType(tuple(resolve_type(ctx, item) for item in node.elements)), node.span
        )
    if isinstance(node, ast.ParenType):
        return resolve_type(ctx, node.inner)
    if isinstance(node, ast.SpaceType):
        return _space_type(ctx, node)
    if isinstance(node, ast.RefType):
        ctx.report("K0317", "A borrow can only be the type of a parameter.", node.span)
        return ERROR
    ctx.shared.errors += 1
    return ERROR


def parameter_type(ctx: Context, node: ast.Type | None) -> tuple[Type, str]:
    """Type and borrow ("", "&", "&mut") of a parameter."""
    while isinstance(node, ast.ParenType):
        node = node.inner
    if isinstance(node, ast.RefType):
        return resolve_type(ctx, node.inner), "&mut" if node.is_mut else "&"
    return resolve_type(ctx, node), ""


def builtin_type(name: str) -> Type | None:
    """The scalar type of a name without arguments."""
    if name in _NAMED:
        return _NAMED[name]
    match = _INTEGER.fullmatch(name)
    if match is None or match[2].startswith("0") or len(match[2]) > 2 or int(match[2]) > 64:
        return None
    return IntType(int(match[2]), match[1] == "i")


def _name_type(ctx: Context, node: ast.NameType) -> Type:
    path = node.path
    token = path.name_token if path else None
    if path is None or token is None:
        ctx.shared.errors += 1
        return ERROR
    if path.is_qualified:
        symbol = find(ctx, path)
        return ERROR if symbol is None else _item_type(ctx, symbol, node, token.span)
    name = token.text
    symbol = ctx.item(name)
    if symbol is not None:
        return _item_type(ctx, symbol, node, token.span)
    if name in ("fix", "ufix"):
        return _fixed_type(ctx, node, name == "fix")
    found = builtin_type(name)
    if found is None:
        sized = _sized_type(node, name)
        return _unknown_type(ctx, sized or name, node.span if sized else token.span, name)
    if node.args:
        ctx.report("K0314", f"`{name}` takes no arguments.", node.span)
        return ERROR
    return found


def _sized_type(node: ast.NameType, name: str) -> str | None:
    """The type meant by `ap_uint<8>` and its like."""
    match = _SIZED.fullmatch(name)
    width = node.args[0].expr if len(node.args) == 1 else None
    if match is None or not isinstance(width, ast.Literal) or not 1 <= (width.int_value or 0) <= 64:
        return None
    signed = not (match[1] or match[2] == "U" or match[3] or "it" in name)
    return f"{'i' if signed else 'u'}{width.int_value}"


_ADVICE = {
    **dict.fromkeys(("Vec", "Array", "list", "List", "vector", "array"), "a tensor is written `[u8; N]`"),
    **dict.fromkeys(("str", "string", "String"), "text only labels what effects print and files they name"),
}


def _unknown_type(ctx: Context, meant: str, span: Span, name: str) -> Type:
    """Report a type's name; ``meant`` is another where it is known which."""
    if name in ctx.module.lost_names:
        ctx.shared.errors += 1
        return ERROR
    ctx.module.lost_names.add(name)  # one missing declaration, one report
    if isinstance(ctx.scopes.find(name), Constant):
        ctx.report("K0205", f"`{name}` is a compile-time size, and a type is needed here; functions are "
                   "generic in sizes alone.", span)
        return ERROR
    match = _INTEGER.fullmatch(name)
    if match is not None:
        ctx.report("K0319", f"Integers have 1 to 64 bits, so there is no type `{name}`.", span)
        return ERROR
    types = [
        item for item, symbol in ctx.module.items.items()
        if isinstance(symbol.node, (ast.StructItem, ast.TypeAliasItem))
    ]
    guess = meant if meant != name else closest(name, types) or scalar_type(name)
    if guess is None and name not in _ADVICE:
        guess = closest(name, _TYPE_NAMES)
    tail = f"; did you mean `{guess}`?" if guess else "."
    fix = Fix(f"use `{guess}`", span, guess) if guess else Fix(_ADVICE[name]) if name in _ADVICE else None
    ctx.report("K0201", f"There is no type named `{name}`{tail}", span, fix=fix)
    return ERROR


def _item_type(ctx: Context, symbol: Symbol, node: ast.NameType, span: Span) -> Type:
    if not isinstance(symbol, ItemSymbol) or symbol.failed_import:
        ctx.shared.errors += 1
        return ERROR
    if not isinstance(symbol.node, (ast.StructItem, ast.TypeAliasItem)):
        ctx.report("K0205", f"`{symbol.name}` is {symbol.kind_text}, and a type is needed here.", span)
        return ERROR
    if node.args:
        ctx.report("K0314", f"`{symbol.name}` takes no arguments.", node.span)
        return ERROR
    found = ctx.checker.named_type(symbol)
    if has_error(found):
        ctx.shared.errors += 1
    return found


def _fixed_type(ctx: Context, node: ast.NameType, signed: bool) -> Type:
    args = node.args
    name = "fix" if signed else "ufix"
    if len(args) != 2:
        ctx.report(
            "K0314", f"`{name}` takes its width and its number of fraction bits: `{name}<16, 8>`.", node.span,
        )
        return ERROR
    width = size_argument(ctx, args[0])
    fraction = size_argument(ctx, args[1])
    if width is None or fraction is None:
        return ERROR
    if not (1 <= width <= 64 and fraction <= width):
        ctx.report(
            "K0319", f"`{name}<{width}, {fraction}>` is not possible: the width is 1 to 64 bits, and the "
            "fraction at most the width.", node.span,
        )
        return ERROR
    return FixType(width, fraction, signed)


def size_argument(ctx: Context, arg: ast.GenericArg) -> int | None:
    """The compile-time size of an argument in `<..>`."""
    if arg.expr is not None:
        return ctx.size(arg.expr, "A size")
    path = arg.bare_path
    if path is None:
        if arg.type is not None and not isinstance(arg.type, ast.Error):
            ctx.report("K0314", "A size is needed here, and this is a type.", arg.span)
        return None
    name = path.name or ""
    if not path.is_qualified and ctx.lookup(name) is None and builtin_type(name) is not None:
        ctx.report("K0314", f"A size is needed here, and `{name}` is a type.", arg.span)
        return None
    symbol = find(ctx, path)
    found = None if symbol is None else constant_of(ctx, symbol, path.name or "", path.span)
    if found is None:
        return None
    if not isinstance(found.type, IntType) or not 0 <= int(found.value) < 1 << 31:
        ctx.report("K0309", f"A size is 0 to {(1 << 31) - 1}, and this is {found.value}.", arg.span)
        return None
    return int(found.value)


def _tensor_type(ctx: Context, node: ast.TensorType) -> Type:
    element = resolve_type(ctx, node.element)
    extents = [ctx.size(dim) for dim in node.dims]
    if not extents:
        ctx.shared.errors += 1
        return ERROR
    if any(extent is None for extent in extents) or has_error(element):
        return ERROR
    return make_tensor(ctx, element, tuple(extent or 0 for extent in extents), node.span)


def make_tensor(ctx: Context, element: Type, shape: tuple[int, ...], span: Span, space: str = "host") -> Type:
    """The tensor type in normal form; refuses nested spaces and absurd sizes."""
    if has_error(element):
        return ERROR
    if isinstance(element, TensorType) and element.space != space:
        ctx.report("K0319", "The elements of a tensor cannot be in a memory space of their own.", span)
        return ERROR
    made = TensorType.tensor(element, shape, space)
    if made.size > MAX_ELEMENTS:
        ctx.report("K0319", f"A tensor of {made.size} elements is too large.", span)
        return ERROR
    axes = _axes(made)
    if axes > MAX_AXES:
        ctx.report("K0319", f"A tensor has at most {MAX_AXES} axes, and this one has {axes}.", span)
        return ERROR
    return made


def _axes(kind: Type) -> int:
    """Axes of the arrays that hold a value of the type."""
    kind = shallow(kind)
    if isinstance(kind, TensorType):
        return len(kind.shape) + _axes(kind.element)
    if isinstance(kind, TupleType):
        return max((_axes(item) for item in kind.items), default=0)
    if isinstance(kind, StructType):
        return max((_axes(item) for _, item in kind.fields), default=0)
    return 0


def _space_type(ctx: Context, node: ast.SpaceType) -> Type:
    inner = resolve_type(ctx, node.inner)
    if has_error(inner):
        return ERROR
    if not isinstance(inner, TensorType):
        ctx.report("K0319", f"A memory space qualifies a tensor, and `{inner}` is none.", node.span)
        return ERROR
    return TensorType(inner.element, inner.shape, node.space or "host")

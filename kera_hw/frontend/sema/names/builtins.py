"""The names of the outermost scope: built-in operations with their parameters, and methods."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """A built-in's parameters in order, as ``name``, ``name?`` when it may be left out, ``name...`` when it
    takes all further positions; ``turbofish`` says what `::<..>` takes, for messages."""

    names: tuple[str, ...]
    turbofish: str = ""
    required: int = 0
    repeated: bool = False


def _row(text: str, turbofish: str = "") -> Parameters:
    names = text.split()
    repeated = bool(names) and names[-1].endswith("...")
    required = sum(not name.endswith(("?", "...")) for name in names)
    return Parameters(tuple(name.rstrip("?.") for name in names), turbofish, required, repeated)


#: Words that stand for themselves in the position of a mode.
ORDERS = ("lanes", "sequential", "tree", "exact")
PRODUCTS = ("fused", "unfused", "wide")
ROUNDINGS = ("floor", "trunc", "half_up", "half_even")
OVERFLOWS = ("wrap", "saturate")
MODE_WORDS = frozenset((*ORDERS, *PRODUCTS, *ROUNDINGS, *OVERFLOWS))

_UNARY = (
    "abs neg sign sqrt rsqrt recip floor ceil round trunc exp exp2 log log2 sin cos tanh sigmoid erf relu "
    "gelu silu is_nan is_finite reverse_bits reverse_bytes popcount clz ctz"
)

BUILTINS: dict[str, Parameters] = {
    **{name: _row("x") for name in _UNARY.split()},
    **{name: _row("a b") for name in ("saturating_add", "saturating_sub", "saturating_mul")},
    **{name: _row("a b") for name in ("mul_wide", "clmul")},
    "min": _row("a b? axis?"),
    "max": _row("a b? axis?"),
    "clamp": _row("x lo hi"),
    "select": _row("c a b"),
    "fma": _row("a b c"),
    "copysign": _row("a b"),
    "add_carry": _row("a b c"),
    "rotl": _row("x amount"),
    "rotr": _row("x amount"),
    "cat": _row("a b..."),
    "bitcast": _row("x", "the type: `bitcast::<u32>(x)`"),
    "round_to": _row("x mode? overflow?", "the type: `round_to::<fix<16, 8>>(x, half_even, saturate)`"),
    "map": _row("a f"),
    "zip": _row("a b f"),
    "reduce": _row("a init f"),
    "scan": _row("a init f"),
    "shift_in": _row("a x"),
    "len": _row("a"),
    "iota": _row("", "element type and length: `iota::<u32, 8>()`"),
    "reshape": _row("a", "the extents: `reshape::<4, 2>(a)`"),
    "transpose": _row("a"),
    "permute": _row("a axes"),
    "broadcast": _row("a", "the extents: `broadcast::<4, 2>(a)`"),
    "concat": _row("a b axis?"),
    "pad": _row("a lo hi value?"),
    "reverse": _row("a axis?"),
    "gather": _row("a indices"),
    "sum": _row("x axis? order?"),
    "prod": _row("x axis? order?"),
    "any": _row("x axis?"),
    "all": _row("x axis?"),
    "argmin": _row("a axis?"),
    "argmax": _row("a axis?"),
    "mean": _row("a axis? order?"),
    "dot": _row("a b order? mul?"),
    "matmul": _row("a b mul?"),
    "conv2d": _row("x w stride? pad? mul?"),
    "max_pool2d": _row("x size stride? pad?"),
    "avg_pool2d": _row("x size stride? pad?"),
    "softmax": _row("a axis?"),
    "layer_norm": _row("a axis? eps?"),
    "rms_norm": _row("a axis? eps?"),
    "attention": _row("q k v"),
    "to_device": _row("x"),
    "to_host": _row("x"),
    "pin": _row("x"),
    "unify": _row("x"),
    "to_remote": _row("x"),
    "clone": _row("x"),
    "print": _row("label x..."),
    "read_tensor": _row("name", "the type: `read_tensor::<[f32; 4]>(\"name\")`"),
    "write_tensor": _row("name x"),
    "send": _row("channel x"),
    "recv": _row("channel", "the type: `recv::<[f32; 4]>(\"channel\")`"),
    "now": _row(""),
    "random": _row("shape...", "the element type: `random::<u32>(4)`"),
    "assert": _row("c label?"),
    "cover": _row("c label?"),
    "assert_eq": _row("a b"),
}

METHODS = ("bits", "bit", "at", "clamped", "step")

EFFECTS = ("io", "fs.read", "fs.write", "net", "time", "rand")

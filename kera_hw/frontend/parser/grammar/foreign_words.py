"""Words of other languages, and what stands for them in Kera."""
from __future__ import annotations

import re

#: Binary operators that are words: in Kera, and how tightly they bind there.
OPERATORS: dict[bytes, tuple[str, int]] = {
    b"and": ("&&", 2), b"or": ("||", 1), b"xor": ("^", 5), b"mod": ("%", 9), b"is": ("==", 3),
}

#: Macros that print, and what others are here.
PRINTS = ("println", "print", "eprintln", "eprint", "dbg")
MACROS: dict[str, str] = {
    "panic": "a function always gives a value: add one that says what is wrong",
    "format": "text only labels what `print` shows",
}

#: What other languages call the scalar types.
_TYPES: dict[str, str] = {
    "int": "i32", "uint": "u32", "usize": "u32", "isize": "i32", "size_t": "u32", "byte": "u8", "char": "u8",
    "uchar": "u8", "short": "i16", "ushort": "u16", "long": "i64", "ulong": "u64", "unsigned": "u32",
    "signed": "i32", "integer": "i32", "natural": "u31", "float": "f32", "double": "f64", "real": "f64",
    "half": "f16", "bfloat16": "bf16", "bit": "bool", "logic": "bool", "reg": "bool", "wire": "bool",
    "std_logic": "bool", "std_ulogic": "bool", "boolean": "bool", "Bool": "bool", "_Bool": "bool",
    "shortint": "i16", "longint": "i64", "void": "()", "fixed": "fix",
}
_SIZED = re.compile(r"(u|s)?(?:int|Int)([0-9]{1,2})(?:_t)?")
_FLOAT = re.compile(r"(?:float|Float)(16|32|64)")
_OWN = re.compile(r"[iu](?:[1-9]|[1-5][0-9]|6[0-4])|bool|f16|bf16|f32|f64")


def scalar_type(name: str) -> str | None:
    """The Kera type that a scalar type's name means, in Kera itself or elsewhere."""
    if _OWN.fullmatch(name):
        return name
    sized = _SIZED.fullmatch(name)
    if sized is not None and 1 <= int(sized[2]) <= 64:
        return f"{'u' if sized[1] == 'u' else 'i'}{int(sized[2])}"
    real = _FLOAT.fullmatch(name)
    return f"f{real[1]}" if real is not None else _TYPES.get(name)


#: Words that begin a declaration of a variable elsewhere, where a name follows.
DECLARATIONS: frozenset[bytes] = frozenset((
    *(name.encode() for name in _TYPES if name != "fixed"), b"var", b"auto", b"val", b"my", b"local",
    b"signal", b"variable", b"int8_t", b"int16_t", b"int32_t", b"int64_t", b"uint8_t", b"uint16_t",
    b"uint32_t", b"uint64_t", b"static",
))

#: First words of statements: the message, and the advice.
STATEMENTS: dict[bytes, tuple[str, str]] = {
    b"assign": ("There is no `assign`.", "write `let y = a;`, or `y = a;` for a variable"),
    **dict.fromkeys(
        (b"always", b"always_ff", b"always_comb", b"initial", b"process"),
        ("The language has no processes: a `stream` runs once for each item.",
         "declare what is kept in `state z: u8 = 0;`, and assign to it"),
    ),
    **dict.fromkeys(
        (b"switch", b"case"),
        ("The language has no `switch`.", "write `match x { 0 => a, 1 | 2 => b, _ => c }`"),
    ),
    **dict.fromkeys(
        (b"do", b"repeat", b"foreach", b"until"),
        ("The loops are `for` and `while`.", "write `for i in a..b { .. }` or `while c, max N { .. }`"),
    ),
    **dict.fromkeys(
        (b"try", b"throw", b"raise"),
        ("The language has no exceptions.", "give a value that says what is wrong, as a `bool` beside it"),
    ),
    b"print": ("`print` is called.", "write `print(\"label\", x)`, and `! io` in the signature"),
    **dict.fromkeys(
        (b"def", b"function", b"func"),
        ("Functions stand at the top level of the file.", "write `fn name(x: u8) -> u8 { .. }` there"),
    ),
}

#: First words of items: the message, and the advice.
ITEMS: dict[bytes, tuple[str, str]] = {
    **dict.fromkeys(
        (b"module", b"entity", b"architecture", b"component"),
        ("The language has no modules of ports.", "write a `fn` of its inputs, or a `stream` with `state`"),
    ),
    **dict.fromkeys(
        (b"always", b"always_ff", b"always_comb", b"initial", b"process", b"assign"),
        ("The language has no processes.", "write a `fn`, or a `stream` that runs once for each item"),
    ),
    **dict.fromkeys(
        (b"class", b"record"),
        ("The language has no classes.", "write `struct S { a: u8 }` and functions on it"),
    ),
    **dict.fromkeys(
        (b"impl", b"trait", b"interface"),
        ("Functions do not belong to types.", "write `fn f(s: S) -> u8 { .. }`"),
    ),
    **dict.fromkeys(
        (b"import", b"include", b"from", b"package", b"library", b"mod"),
        ("Items of other files are brought in with `use`.", "write `use module::name;`"),
    ),
    **dict.fromkeys(
        (b"parameter", b"localparam", b"define", b"let", b"var", b"static"),
        ("Values at the top level are constants.", "write `const N: u32 = ..;`"),
    ),
    b"typedef": ("A type is named with `type`.", "write `type Name = u8;`"),
    **dict.fromkeys(
        (b"union", b"macro", b"template", b"extern"),
        ("The language has nothing of this kind.",
         "the items are `fn`, `stream`, `const`, `struct`, `type`, `use` and `test`"),
    ),
}

"""K00xx: the lexer's diagnostics."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0001", "bytes that are not UTF-8",
     "A source file is UTF-8 text throughout, comments and strings included. Save the file as UTF-8."),
    ("K0002", "name outside ASCII",
     "Names are made of the letters A to Z and a to z, digits and `_`, so that they survive in Verilog "
     "and in every other output. Other scripts may appear in comments and strings."),
    ("K0003", "unknown character",
     "No token of the language starts with this character. Remove it, or move it into a comment."),
    ("K0004", "comment never closed",
     "Block comments nest, so each `/*` needs its own `*/` before the end of the file."),
    ("K0005", "string never closed",
     "A string ends with `\"` on the line it began on; write a line break in it as `\\n`."),
    ("K0006", "unknown escape in a string",
     "The escapes are `\\n`, `\\r`, `\\t`, `\\0`, `\\\\`, `\\\"`, `\\x00` to `\\x7F` and `\\u{..}` with a "
     "Unicode scalar value."),
    ("K0007", "malformed number",
     "The number lacks digits where it needs some, or holds a digit its base does not have."),
    ("K0008", "unknown suffix of a number",
     "A number may be followed by `i1` to `i64`, `u1` to `u64`, `f16`, `bf16`, `f32` or `f64`."),
    ("K0009", "number out of all bounds",
     "A number has at most 1000 characters and an exponent between -9999 and 9999; no type holds more."),
    ("K0010", "hexadecimal float without an exponent",
     "A hexadecimal float ends with a binary exponent: `0x1.8p0` is 1.5."),
    ("K0011", "integer suffix on a float",
     "A literal with a point or an exponent never becomes an integer. Drop the suffix, or write the "
     "integer out."),
    ("K0012", "file that is not text",
     "A source file is UTF-8 text. This one holds mostly other bytes: a compiled program, a picture, or text "
     "in another encoding."),
    ("K0013", "token of another language",
     "Verilog, C, Python and Rust write this otherwise. `8'h0f` is `0x0fu8`, `~a` is `!a`, `'a'` is `97u8`, "
     "text stands in double quotes, comments begin with `//`, and `#define N 4` is `const N: u32 = 4;`."),
)

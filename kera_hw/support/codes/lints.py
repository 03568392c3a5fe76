"""K025x, K035x: lints, which warn of what is most likely a mistake. A name that begins with `_` has none."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0250", "unused variable",
     "Nothing reads the variable, state or size: `let y = x + 1;` with no `y` after it. Remove it, or begin "
     "its name with `_` where that is intended: `_y`, or `_` alone."),
    ("K0251", "unused parameter",
     "The body never reads the parameter: `fn f(a: u8, b: u8) -> u8 { a }`. Remove it, or call it `_b`; "
     "of an exported function that renames a port."),
    ("K0252", "`mut` without need",
     "The variable is never assigned, nor lent by `&mut`: `let mut y = x; y + 1`. Remove `mut`."),
    ("K0253", "unused function",
     "No exported item and no test reaches the function or stream: `fn helper() -> u8 { 1 }` without a call. "
     "Remove it, export it with `pub`, or call it `_helper`. A file that exports nothing is a module for "
     "others, and all its items count as used."),
    ("K0254", "unused constant",
     "No exported item and no test uses the constant: `const N: u8 = 4;` alone. Remove it, export it with "
     "`pub`, or call it `_N`."),
    ("K0255", "unused import",
     "The file never uses what it imports: `use dsp::window;` without `window(..)`. Remove the line."),
    ("K0256", "unused type",
     "No exported item and no test uses the struct or type: `type Sample = i16;` alone. Remove it, export it "
     "with `pub`, or call it `_Sample`."),
    ("K0308", "unreachable arm",
     "Earlier arms take every value that this arm matches, as `3` after `0..=9`. A name alone, like `_`, "
     "takes every value. Remove the arm, or move it up."),
    ("K0350", "loop that never runs",
     "The range of the loop is empty, or its bound is 0: `for i in 8..0` counts up from 8 to below 0. To "
     "count down write `for i in (0..8).rev()`."),
    ("K0351", "shift past the width",
     "The amount is at least the width of the value, so no bit of it is left: `x << 8` with `x: u8` is 0. "
     "Convert the value first: `(x as u16) << 8`."),
    ("K0352", "division by 0",
     "The divisor is 0 for every input: `x / 0` has all bits set, and `x % 0` is `x`. Write another "
     "divisor."),
    ("K0353", "comparison that is always so",
     "Every value of the types and masks in it gives the same answer: `x >= 0` with `x: u8`, or "
     "`x & 3 < 4`. Remove the comparison, or correct its bound."),
    ("K0354", "unused value",
     "The statement only computes a value, which nothing uses: `x == 3;`. An assignment is `x = 3;`, and "
     "`let _ = x + 3;` says that dropping it is intended."),
)

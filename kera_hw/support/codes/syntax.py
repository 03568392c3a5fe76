"""K01xx: the parser's diagnostics."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0101", "something else expected",
     "The grammar wants another token here; the message says which."),
    ("K0102", "bracket never closed",
     "Each `(`, `[` and `{` needs its partner. The place given is where the open one stands."),
    ("K0103", "nested too deeply",
     "Brackets, blocks, operators and types nest to a fixed depth, far beyond what people write. Give "
     "parts of the expression names with `let`, or move them into functions."),
    ("K0104", "chained comparison",
     "Comparisons do not chain: write `a < b && b < c`. To give a function compile-time arguments write "
     "`f::<8>(x)`."),
    ("K0105", "`while` without a bound",
     "Every loop ends, so `while` names the most iterations it may take: `while c, max 16 { .. }`."),
    ("K0106", "closing bracket without an opening one",
     "This `)`, `]` or `}` has no partner. Remove it, or open the bracket where it should be."),
    ("K0107", "not an item",
     "The top level of a file holds `fn`, `stream`, `const`, `struct`, `type`, `use` and `test` items."),
    ("K0108", "`return` before the end",
     "`return` may only be the last statement of a function or stream body. Elsewhere let `if` and `match` "
     "choose the value."),
    ("K0109", "assignment as a value",
     "An assignment is a statement and has no value; put it in a block: `{ x = 1; }`. Equality is `==`."),
    ("K0110", "item inside a body",
     "Only `const` may stand inside a body; other items belong at the top level of the file."),
    ("K0111", "struct literal in a head",
     "In the head of `if`, `while`, `match` and `for` a `{` opens the body, so a struct literal there needs "
     "parentheses around it."),
    ("K0112", "reserved word as a name",
     "Reserved words cannot name things. Choose another name."),
    ("K0113", "loop or jump the language lacks",
     "The loops are `for i in a..b { .. }` and `while c, max N { .. }`; there is no `loop`, `break` or "
     "`continue`."),
    ("K0115", "notation of another language",
     "Verilog, C, Python and Rust write this otherwise. `a ? b : c` is `if a { b } else { c }`, `a[7:4]` is "
     "`a.bits(7, 4)`, `{a, b}` is `cat(a, b)`, `elif` is `else if`, `a and b` is `a && b`, `x++` is "
     "`x += 1`, `println!` is `print`, an `enum` is a `type` with constants; the message shows what to "
     "write."),
    ("K0114", "`pub` where nothing can be exported",
     "`fn`, `stream`, `const`, `struct` and `type` can be `pub`; `use` and `test` cannot."),
)

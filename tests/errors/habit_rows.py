"""What Verilog, C, Python and Rust write otherwise: code, text with carets, advice, and the text repaired.

The last part is the program once the suggestion is applied, None where there is advice alone.
"""
from __future__ import annotations

ROWS: tuple[tuple[str, str, str, str | None], ...] = (
    ("K0013", "fn f(a: u8) -> u8 { «~»a }", "write `!`", "fn f(a: u8) -> u8 { !a }"),
    (
        "K0115", "fn f(a: bool, b: u8, c: u8) -> u8 { a «?» b : c }", "write an `if`",
        "fn f(a: bool, b: u8, c: u8) -> u8 { if a { b } else { c } }",
    ),
    (
        "K0115", "fn f(a: bool, b: u8, c: u8) -> u8 { let x = a «?» b : a ? c : b + 1; x }", "write an `if`",
        "fn f(a: bool, b: u8, c: u8) -> u8 { let x = if a { b } else if a { c } else { b + 1 }; x }",
    ),
    ("K0013", "fn f() -> u8 { «8'h0f» }", "write `0x0fu8`", "fn f() -> u8 { 0x0fu8 }"),
    ("K0115", "fn f(a: u8) -> u4 { «a[7:4]» }", "write `a.bits(7, 4)`", "fn f(a: u8) -> u4 { a.bits(7, 4) }"),
    (
        "K0115", "fn f(a: u8, i: u8) -> u4 { «a[i +: 4]» }", "write `a.bits(i + 3, i)`",
        "fn f(a: u8, i: u8) -> u4 { a.bits(i + 3, i) }",
    ),
    (
        "K0115", "fn f(a: [u8; 8]) -> [u8; 4] { «a[1:5]» }", "write `a[1..5]`",
        "fn f(a: [u8; 8]) -> [u8; 4] { a[1..5] }",
    ),
    (
        "K0115", "fn f(a: [u8; 8]) -> [u8; 4] { «a[:4]» }", "write `a[..4]`",
        "fn f(a: [u8; 8]) -> [u8; 4] { a[..4] }",
    ),
    (
        "K0115", "fn f(a: u8, b: u8) -> u16 { «{a, b}» }", "join the bits with `cat`",
        "fn f(a: u8, b: u8) -> u16 { cat(a, b) }",
    ),
    (
        "K0115", "fn f(a: u8, b: u8) -> u16 { let x = «{a, b}»; x }", "join the bits with `cat`",
        "fn f(a: u8, b: u8) -> u16 { let x = cat(a, b); x }",
    ),
    (
        "K0115", "fn f(a: u1) -> u4 { «{4{a}}» }", "join the bits with `cat`",
        "fn f(a: u1) -> u4 { cat(a, a, a, a) }",
    ),
    (
        "K0115", "fn f(a: u8) -> u8 { if a > 1 { 1 } «elif» a > 0 { 2 } else { 3 } }", "write `else if`",
        "fn f(a: u8) -> u8 { if a > 1 { 1 } else if a > 0 { 2 } else { 3 } }",
    ),
    (
        "K0115", 'fn f(a: u8) -> u8 { «println!("x", a)»; a }',
        'write `print("x", a)`, and `! io` in the signature', None,
    ),
    (
        "K0115",
        "«enum» State { Idle, RunFast, Done }\nfn f(s: State) -> u8 { match s { State::Idle => 1, _ => 2 } }",
        "write `type State = u2; const IDLE: State = 0; const RUN_FAST: State = 1; "
        "const DONE: State = 2;` and `match` on these",
        None,
    ),
    (
        "K0115", "fn f(a: bool, b: bool) -> bool { a «and» b or not a }", "write `&&`",
        "fn f(a: bool, b: bool) -> bool { a && b or not a }",
    ),
    (
        "K0115", "fn f(a: u8) -> u8 { let mut i = a; «i++»; i }", "write an assignment",
        "fn f(a: u8) -> u8 { let mut i = a; i += 1; i }",
    ),
    (
        "K0115", "fn f(a: u8) -> u8 { let mut i = a; «++i»; i }", "write an assignment",
        "fn f(a: u8) -> u8 { let mut i = a; i += 1; i }",
    ),
    ("K0115", "fn f(a: u8) -> u8 { a «**» 2 }", "multiply", "fn f(a: u8) -> u8 { a * a }"),
    ("K0115", "fn f(a: u8) -> bool { a «===» 2 }", "write `==`", "fn f(a: u8) -> bool { a == 2 }"),
    (
        "K0115", "fn f(a: u8) -> u8 { «assign» y = a; y }", "write `let y = a;`, or `y = a;` for a variable",
        None,
    ),
    (
        "K0115",
        "stream f(a: u8) -> u8 { state z: u8 = 0; «always» @(posedge clk) begin\n  z <= a;\n end\n z }",
        "declare what is kept in `state z: u8 = 0;`, and assign to it", None,
    ),
    (
        "K0115", "«module» top(input a, output b);\n assign b = a;\nendmodule",
        "write a `fn` of its inputs, or a `stream` with `state`", None,
    ),
    ("K0115", "«def» f(x: u8) -> u8 { x }", "write `fn`", "fn f(x: u8) -> u8 { x }"),
    ("K0115", "«def» f(x):\n    return x + 1\n", "write `fn`", "fn f(x):\n    return x + 1\n"),
    (
        "K0108", "fn f(x: u8) -> u8 { if x > 3 { «return x;» } x + 1 }",
        "let the value be chosen: `if c { early } else { the rest }`", None,
    ),
    (
        "K0115", "fn f(a: u8, b: u8, c: bool) -> u8 { let x = if c «then» a else b; x }", "write braces",
        "fn f(a: u8, b: u8, c: bool) -> u8 { let x = if c { a } else { b }; x }",
    ),
    (
        "K0115", "fn f(a: u8, b: u8, c: bool) -> u8 { let x = a «if» c else b; x }", "write an `if`",
        "fn f(a: u8, b: u8, c: bool) -> u8 { let x = if c { a } else { b }; x }",
    ),
    ("K0013", "fn f() -> u8 { «'a'» }", 'write `"a"` for a text, `97u8` for the code of a character', None),
    (
        "K0013", "fn f(x: u8) -> u8 { print(«'x'», x); x }",
        'write `"x"` for a text, `120u8` for the code of a character', None,
    ),
    (
        "K0115", "fn f(x: u8) -> u8 { if x > 3«:»\n        y = 1\n    else:\n        y = 2\n    y }",
        "write `{ .. }`", None,
    ),
    (
        "K0115", "fn f(x: u8) -> u8 { let mut s = 0; for «(»i = 0; i < 4; i++) { s += x; } s }",
        "write `for i in 0..n { .. }`", None,
    ),
    ("K0115", "fn f(x: u8) -> u8 { «int» y = x; y }", "write `let y: i32 = x;`", None),
    ("K0115", "fn f(x: u8) -> u8 { «reg» [7:0] y; y }", "write `let y: u8 = ..;`", None),
    ("K0115", "fn f(«int x») -> u8 { x }", "write the name first", "fn f(x: i32) -> u8 { x }"),
    ("K0115", "fn f(x: u8)«:» u8 { x }", "write `->`", "fn f(x: u8) -> u8 { x }"),
    ("K0115", "fn f(x: u8) -> u8 { «y» := x; y }", "write `let y = ..;`", None),
    ("K0115", "fn f(x: u8) -> u16 { «(u16) x» }", "convert with `as`", "fn f(x: u8) -> u16 { x as u16 }"),
    ("K0013", "«# a comment here, and more»\nfn f(x: u8) -> u8 { x }", "write `//`", None),
    ("K0013", "fn f(x: u8) -> u8 { x } «#» python", "write `//`", None),
    (
        "K0115", "fn f(x: u8) -> u8 { «switch» (x) { case 0: return 1; default: return 2; } }",
        "write `match x { 0 => a, 1 | 2 => b, _ => c }`", None,
    ),
    (
        "K0113", "fn f(x: u8) -> u8 { let mut s = x; while true, max 4 { if s > 3 { «break»; } s += 1; } s }",
        "write `while c, max N { .. }`, whose condition ends the loop", None,
    ),
    (
        "K0113", "fn f(x: u8) -> u8 { let mut s = x; for i in 0..4 { if s > 3 { «continue»; } s += 1; } s }",
        "put the rest of the round into an `if`; `while c, max N { .. }` is the loop that ends early", None,
    ),
    ("K0115", "«int» main() { return 0; }", "write `fn name(x: u8) -> u8 { .. }`", None),
    ("K0115", "«import» numpy as np\nfn f(x: u8) -> u8 { x }", "write `use module::name;`", None),
    ("K0115", "«let» x = 5;\nfn f() -> u8 { x }", "write `const N: u32 = ..;`", None),
    (
        "K0115", "struct S { «u8 a»; u8 b; }\nfn f(s: S) -> u8 { s.a }", "write the name first",
        "struct S { a: u8; u8 b; }\nfn f(s: S) -> u8 { s.a }",
    ),
    (
        "K0115", "fn f(x: fix<16, 8>) -> fix<8, 4> { round_to(x, «fix<8, 4>», half_even) }",
        "write `f::<fix<8, 4>>(..)`", None,
    ),
    ("K0115", "fn f(x: u8) -> u8 { «+»x }", "remove it", "fn f(x: u8) -> u8 { x }"),
    ("K0115", "fn f(x: i8) -> i8 { x «>>>» 2 }", "write `>>`", "fn f(x: i8) -> i8 { x >> 2 }"),
    ("K0013", "«#define N 4»\nfn f() -> u8 { N }", "write `const N: u32 = 4;`", None),
    ("K0115", "fn f(x: u8) -> u8 { x«?» }", "write `if c { a } else { b }`", None),
    (
        "K0115", "fn f(x: u8) -> u8 { «vec![x, x]»[0] }", "list the elements",
        "fn f(x: u8) -> u8 { [x, x][0] }",
    ),
    ("K0115", "«class» A { }", "write `struct S { a: u8 }` and functions on it", None),
    ("K0115", "«typedef» u8 byte_t;", "write `type Name = u8;`", None),
    ("K0115", "fn f(x: u8) -> u8 { «var» y = x; y }", "write `let y = x;`", None),
    ("K0302", "fn f(a: u8) -> u8 { a + 1«;» }", "remove the `;`", "fn f(a: u8) -> u8 { a + 1 }"),
    (
        "K0302", "fn f(a: u8, c: bool) -> u8 { if c { a«;» } else { 2 } }", "remove the `;`",
        "fn f(a: u8, c: bool) -> u8 { if c { a } else { 2 } }",
    ),
    (
        "K0302", "fn f(a: u8, c: bool) -> u8 { if c { 2 } else { a«;» } }", "remove the `;`",
        "fn f(a: u8, c: bool) -> u8 { if c { 2 } else { a } }",
    ),
    (
        "K0302", "fn f(a: u8, c: bool) -> u8 { if c { 2«;» } else { a; } }", "remove the `;`",
        "fn f(a: u8, c: bool) -> u8 { if c { 2 } else { a; } }",
    ),
    (
        "K0306", "fn f(a: [u8; 2], b: [u8; 2], c: [u8; 2]) -> [u8; 6] { concat(a, b, «c») }",
        "join two at a time",
        "fn f(a: [u8; 2], b: [u8; 2], c: [u8; 2]) -> [u8; 6] { concat(concat(a, b), c) }",
    ),
    (
        "K0304", "fn f(a: u8, b: u8) -> u16 { concat(«a», b) }", "join bits with `cat`",
        "fn f(a: u8, b: u8) -> u16 { cat(a, b) }",
    ),
    ("K0306", "fn f(a: [u8; 2], b: [u8; 2]) -> [u8; 8] { concat(a, b, a, «b») }", "", None),
    (
        "K0306", "fn f(v: [u8; 4]) -> u8 { «reduce»(v, |a, b| a + b) }",
        "write `reduce(a, init, |acc, x| ..)`", None,
    ),
    ("K0306", "fn f(v: [u8; 4]) -> u8 { «reduce»(v) }", "write `reduce(a, init, |acc, x| ..)`", None),
    (
        "K0314", "type S = fix<8, 4>;\nfn f(x: fix<16, 8>) -> S { «round_to»(x, S, half_even) }",
        "write `round_to::<S>(x, half_even)`",
        "type S = fix<8, 4>;\nfn f(x: fix<16, 8>) -> S { round_to::<S>(x, half_even) }",
    ),
    (
        "K0314", "fn f(x: f32) -> u32 { «bitcast»(x, u32) }", "write `bitcast::<u32>(x)`",
        "fn f(x: f32) -> u32 { bitcast::<u32>(x) }",
    ),
    (
        "K0314", "fn f(x: [u8; 8]) -> [u8; 2, 4] { «reshape»(x, 2, 4) }", "write `reshape::<2, 4>(x)`",
        "fn f(x: [u8; 8]) -> [u8; 2, 4] { reshape::<2, 4>(x) }",
    ),
    (
        "K0314", "fn f() -> [u32; 8] { «iota»(u32, 8) }", "write `iota::<u32, 8>()`",
        "fn f() -> [u32; 8] { iota::<u32, 8>() }",
    ),
    ("K0314", "fn f() -> [u32; 8] { «iota»() }", "", None),
    ("K0201", "fn f(x: «usize») -> u8 { 1 }", "use `u32`", "fn f(x: u32) -> u8 { 1 }"),
    ("K0201", "fn f(x: «ap_uint<12>») -> u12 { x }", "use `u12`", "fn f(x: u12) -> u12 { x }"),
    ("K0201", "fn f(x: «reg») -> u8 { 1 }", "use `bool`", "fn f(x: bool) -> u8 { 1 }"),
    (
        "K0326", "stream g(x: u8) -> u8 { x }\nstream f(x: u8) -> u8 { g(«x») }",
        "hold it in `state s: g;`, and advance it with `s.step(x)`", None,
    ),
    (
        "K0210", "fn f(n: u32) -> u32 { let mut s = 0; for i in 0..«n» { s += i; } s }",
        "write `let mut i = 0; while i < n, max 16 { .. i += 1; }`, where 16 is the most rounds there may be",
        None,
    ),
    (
        "K0210", "fn f(n: u32) -> u32 { let mut s = 0; for j in 0..3 { for i in j..«n» { s += i; } } s }",
        "write `let mut i = 0; while i < n, max 16 { .. i += 1; }`, where 16 is the most rounds there may be",
        None,
    ),
    (
        "K0316", "fn f(n: u32) -> u32 { let mut s = 0; for i in «range(8)» { s += i; } s }", "write `0..8`",
        "fn f(n: u32) -> u32 { let mut s = 0; for i in 0..8 { s += i; } s }",
    ),
    (
        "K0316", "fn f(a: [u8; 4]) -> u8 { let mut s = 0; for x in «a» { s += x; } s }",
        "write `for i in 0..len(a)`, and use `a[i]`", None,
    ),
    (
        "K0302", "fn f(a: u8, b: u8) -> bool { «a» && b }", "compare with zero; `&` works on bits",
        "fn f(a: u8, b: u8) -> bool { (a != 0) && b }",
    ),
    (
        "K0201", "fn f() -> u8 { «null» }",
        "there is no null: a `bool` beside the value can say whether it is there", None,
    ),
    ("K0201", "fn f() -> bool { «True» }", "write `true`", "fn f() -> bool { true }"),
    (
        "K0205", "fn f(x: u16) -> u8 { «u8»(x + 1) }", "convert with `as u8`",
        "fn f(x: u16) -> u8 { (x + 1) as u8 }",
    ),
    (
        "K0205", "fn f(x: u16) -> f32 { «float»(x) }", "convert with `as f32`",
        "fn f(x: u16) -> f32 { x as f32 }",
    ),
    (
        "K0201", 'fn f(x: u8) -> u8 { «printf»("x"); x }',
        '`print("label", x)` prints, with `! io` in the signature', None,
    ),
    (
        "K0201", "fn f(x: u8) -> u8 { let y: «int» = x; y }", "use `i32`",
        "fn f(x: u8) -> u8 { let y: i32 = x; y }",
    ),
    ("K0003", 'fn f(x: u8) -> u8 { «$»display("x"); x }', "", None),
    ("K0209", "fn f(a: [u8; 4]) -> u32 { a.«len»() }", "", None),
    ("K0201", "fn f(x: bool) -> bool { «not»(x) }", "write `!x`", None),
    (
        "K0201", "fn f(x: u8, n: u3) -> u8 { «rotate_right»(x, n) }", "write `rotr`",
        "fn f(x: u8, n: u3) -> u8 { rotr(x, n) }",
    ),
    (
        "K0201", "fn f(x: u8) -> u32 { «count_ones»(x) }", "write `popcount`",
        "fn f(x: u8) -> u32 { popcount(x) }",
    ),
    (
        "K0201", "fn f(x: u8) -> u16 { «carryless_mul»(x, x) }", "write `clmul`",
        "fn f(x: u8) -> u16 { clmul(x, x) }",
    ),
    (
        "K0201", "fn f(x: u8) -> bool { «parity»(x) }",
        "`popcount(x).bit(0)` is the parity of the bits", None,
    ),
    (
        "K0318", "fn f(x: u8) -> bool { «x»[3] }", "take a bit with `x.bit(3)`",
        "fn f(x: u8) -> bool { x.bit(3) }",
    ),
    (
        "K0318", "fn f(x: u8) -> u4 { «x»[7..4] }",
        "take bits with `bits`, the highest first: `x.bits(7, 4)`", None,
    ),
    (
        "K0318", "fn f(mut x: u8) -> u8 { «x»[3] = true; x }",
        "an integer is assigned whole: join its bits with `cat`, or change them by `|` and `&`", None,
    ),
    ("K0008", "fn f(x: u8) -> u8 { let y = «0o17»; y }", "", None),
    ("K0101", "fn f(x: u8) -> u8 { if (x == 1)«» x else 2 }", "", None),
    ("K0105", "fn f(x: u8) -> u8 { «while» (x > 1) { } x }", "", None),
    (
        "K0113", "fn f(x: u8) -> u8 { «loop» { } }",
        "write `for i in a..b { .. }` or `while c, max N { .. }`", None,
    ),
    (
        "K0305", "fn f(x: u8) -> u8 { «x» = 3; x }", "declare `x` as `mut`",
        "fn f(mut x: u8) -> u8 { x = 3; x }",
    ),
    ("K0302", "fn f(a: u8) -> bool { «!a» }", "compare with zero", "fn f(a: u8) -> bool { a == 0 }"),
    ("K0101", "fn f(a: u8, b: u8) -> u9 { cat(a«;» b) }", "", None),
    ("K0115", "fn f(x: u8) -> u8 { let f = «lambda» x: x + 1; f(x) }", "write `|x| ..`", None),
    ("K0115", "fn f(x: u8) -> u8 { for i in range(4)«:»\n        x += 1\n    x }", "write `{ .. }`", None),
    (
        "K0115", "fn f(x: u8) -> u8 { «case» (x)\n 0: 1;\n default: 2;\n endcase }",
        "write `match x { 0 => a, 1 | 2 => b, _ => c }`", None,
    ),
    (
        "K0115", "fn f(x: u8) -> u8 { if (x > 1) «begin»\n  x\n end else begin\n 2\n end }", "write `{ .. }`",
        None,
    ),
    (
        "K0115", "fn f(x: u8, y: u8) -> u8 { x «if» x > y else y }", "write an `if`",
        "fn f(x: u8, y: u8) -> u8 { if x > y { x } else { y } }",
    ),
    (
        "K0115", "pub «enum» Op { Add, Sub }\nfn f(x: Op) -> u8 { 1 }",
        "write `type Op = u1; const ADD: Op = 0; const SUB: Op = 1;` and `match` on these", None,
    ),
    (
        "K0115", "fn f(a: u8, b: u8) -> (u1, u8) { let «{»c, s} = a + b; (c, s) }",
        "write `let (sum, carry) = ..`; `add_carry(a, b, false)` gives these two", None,
    ),
    ("K0201", "fn f(x: &«str») -> u8 { 1 }", "text only labels what effects print and files they name", None),
    (
        "K0201", "fn f(x: «string») -> u8 { 1 }", "text only labels what effects print and files they name",
        None,
    ),
    ("K0201", "fn f(x: «Vec»<u8>) -> u8 { 1 }", "a tensor is written `[u8; N]`", None),
    ("K0319", "fn f(x: «u128») -> u8 { 1 }", "", None),
    (
        "K0115", "fn f(a: bool) -> u8 { if «not» a { 1 } else { 2 } }", "write `!`",
        "fn f(a: bool) -> u8 { if !a { 1 } else { 2 } }",
    ),
    (
        "K0215", "fn f(a: bool) -> u8 { match a { «True» => 1, _ => 2 } }", "use `true`",
        "fn f(a: bool) -> u8 { match a { true => 1, _ => 2 } }",
    ),
    (
        "K0201", "fn f() -> u64 { let y: «int» = 5_000_000_000; 1 }", "use `i32`",
        "fn f() -> u64 { let y: i32 = 5_000_000_000; 1 }",
    ),
    (
        "K0115", "fn f(x: u8)«:» u8 { x }\npub fn g(x: u8) -> u8 { f(x) }", "write `->`",
        "fn f(x: u8) -> u8 { x }\npub fn g(x: u8) -> u8 { f(x) }",
    ),
    ("K0115", "fn f(x: u8) -> u8 { «u8» y = x; y }", "write `let y: u8 = x;`", None),
    (
        "K0115", "fn f(x: u8) -> u8 {\n    «enum» A { B, C }\n    x\n}",
        "write `type A = u1; const B: A = 0; const C: A = 1;` and `match` on these", None,
    ),
    (
        "K0115", "fn f(a: u8) -> u8 { let mut i = a; «i--»; i }", "write an assignment",
        "fn f(a: u8) -> u8 { let mut i = a; i -= 1; i }",
    ),
    ("K0115", "fn f(x: u8) «=>» u8 { x }", "write `->`", "fn f(x: u8) -> u8 { x }"),
    ("K0115", "fn g(x: &u8) -> u8 { «*»x }", "remove the `*`", "fn g(x: &u8) -> u8 { x }"),
    (
        "K0115", 'fn f(x: u8) -> u8 { «println!("x = {}", x)»; x }',
        'write `print("x", x)`, and `! io` in the signature', None,
    ),
    ("K0209", "fn f(x: u8) -> u8 { x.«wrapping_add»(1) }", "", None),
)

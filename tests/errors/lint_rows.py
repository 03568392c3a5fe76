"""Programs that are right and yet most likely a mistake: code, text with « » around the carets, text fixed.

The third part is the program once the suggestion is applied, None where nothing can be applied.
"""
from __future__ import annotations

ROWS: tuple[tuple[str, str, str | None], ...] = (
    # Names.
    ("K0250", "pub fn f(x: u8) -> u8 { let «y» = x; x }", "pub fn f(x: u8) -> u8 { let _y = x; x }"),
    ("K0250", "pub fn f(x: u8) -> u8 { let mut «y» = x; y += 1; x }", None),
    ("K0250", "pub fn f(x: u8) -> u8 { let mut «y» = [x; 2]; y[0] = 1; x }", None),
    (
        "K0250", "pub fn f(x: (u8, u8)) -> u8 { let (a, «b») = x; a }",
        "pub fn f(x: (u8, u8)) -> u8 { let (a, _b) = x; a }",
    ),
    (
        "K0250", "pub fn f(x: u8) -> u8 { match x { 0 => 1, «n» => 2 } }",
        "pub fn f(x: u8) -> u8 { match x { 0 => 1, _n => 2 } }",
    ),
    (
        "K0250", "pub fn f(x: u8) -> u8 { let mut s = x; for «i» in 0..4 { s += s; } s }",
        "pub fn f(x: u8) -> u8 { let mut s = x; for _ in 0..4 { s += s; } s }",
    ),
    (
        "K0250", "pub fn f(x: [u8; 4]) -> [u8; 4] { map(x, |«v»| 1) }",
        "pub fn f(x: [u8; 4]) -> [u8; 4] { map(x, |_v| 1) }",
    ),
    ("K0250", "pub stream f(x: u8) -> u8 { state «z»: u8 = 0; z = x; x }", None),
    (
        "K0250", "stream g(x: u8) -> u8 { x } pub stream f(x: u8) -> u8 { state «h»: g; x }",
        "stream g(x: u8) -> u8 { x } pub stream f(x: u8) -> u8 { state _h: g; x }",
    ),
    (
        "K0250", "fn g<«N»>(x: u8) -> u8 { x } pub fn f(x: u8) -> u8 { g::<4>(x) }",
        "fn g<_N>(x: u8) -> u8 { x } pub fn f(x: u8) -> u8 { g::<4>(x) }",
    ),
    (
        "K0250", "pub fn f(x: u8) -> u8 { let y = x; let «y» = y; x }",
        "pub fn f(x: u8) -> u8 { let y = x; let _y = y; x }",
    ),
    ("K0250", "pub fn f(x: u8) -> u8 { x } test \"t\" { let «y» = f(1); }", None),
    ("K0251", "pub fn f(x: u8, «y»: u8) -> u8 { x }", "pub fn f(x: u8, _y: u8) -> u8 { x }"),
    (
        "K0251", "fn g(«a»: u8) -> u8 { 1 } pub fn f(x: u8) -> u8 { g(x) }",
        "fn g(_a: u8) -> u8 { 1 } pub fn f(x: u8) -> u8 { g(x) }",
    ),
    ("K0252", "pub fn f(x: u8) -> u8 { let «mut» y = x; y }", "pub fn f(x: u8) -> u8 { let y = x; y }"),
    ("K0252", "pub fn f(«mut» x: u8) -> u8 { x }", "pub fn f(x: u8) -> u8 { x }"),
    (
        "K0252", "pub fn f(x: (u8, u8)) -> u8 { let («mut» a, b) = x; a + b }",
        "pub fn f(x: (u8, u8)) -> u8 { let (a, b) = x; a + b }",
    ),
    ("K0253", "fn «g»(x: u8) -> u8 { x } pub fn f(x: u8) -> u8 { x }", None),
    ("K0253", "stream «g»(x: u8) -> u8 { x } pub fn f(x: u8) -> u8 { x }", None),
    ("K0254", "const «N»: u8 = 1; pub fn f(x: u8) -> u8 { x }", None),
    (
        "K0254", "pub fn f(x: u8) -> u8 { const «N»: u8 = 1; x }",
        "pub fn f(x: u8) -> u8 { const _N: u8 = 1; x }",
    ),
    ("K0255", "«use dsp::window;» pub fn f(x: u8) -> u8 { x }", " pub fn f(x: u8) -> u8 { x }"),
    ("K0255", "«use dsp;» pub fn f(x: u8) -> u8 { x }", " pub fn f(x: u8) -> u8 { x }"),
    ("K0256", "type «T» = u8; pub fn f(x: u8) -> u8 { x }", None),
    ("K0256", "struct «S» { a: u8 } pub fn f(x: u8) -> u8 { x }", None),
    # Arms.
    ("K0308", "pub fn f(x: u8) -> u8 { match x { 0..=9 => 1, «3» => 2, _ => 3 } }", None),
    ("K0308", "pub fn f(x: u8) -> u8 { match x { 0 => 1, n => n, «_» => 3 } }", None),
    ("K0308", "pub fn f(x: u8) -> u8 { match x { 0 | 1 | «0» => 1, _ => 3 } }", None),
    (
        "K0308",
        "pub fn f(x: (u2, bool)) -> u8 { match x { (0, _) => 1, «(0, true)» | (1, _) => 3, _ => 2 } }", None,
    ),
    # Values.
    ("K0350", "pub fn f(x: u8) -> u8 { let mut s = x; for i in «8..0» { s += i as u8; } s }", None),
    (
        "K0350",
        "pub fn f(x: u8) -> u8 { let mut s = x; for i in 4..8 { for j in «i..4» { s += j as u8; } } s }",
        None,
    ),
    ("K0350", "pub fn f(x: u8) -> u8 { let mut s = x; «while s > 1», max 0 { s += 1; } s }", None),
    ("K0351", "pub fn f(x: u8) -> u8 { «x << 8» }", None),
    ("K0351", "const S: u32 = 9; pub fn f(x: u8) -> u8 { «x >> S» }", None),
    ("K0351", "pub fn f(x: u8) -> u8 { let mut s = x; for i in 8..12 { «s <<= i»; } s }", None),
    ("K0352", "pub fn f(x: u8) -> u8 { «x / 0» }", None),
    ("K0352", "const D: i8 = 0; pub fn f(x: i8) -> i8 { «x % D» }", None),
    ("K0353", "pub fn f(x: u8) -> bool { «x >= 0» }", None),
    ("K0353", "pub fn f(x: u8) -> bool { «x as u16 < 256» }", None),
    ("K0353", "pub fn f(x: i8) -> bool { «-129i16 == x as i16» }", None),
    ("K0353", "pub fn f(x: u8) -> u8 { let low = x & 7; if «low > 7» { 1 } else { 2 } }", None),
    (
        "K0353",
        "pub fn f(x: u8) -> u8 { let mut s = x; for i in 0..4 { if «s as u16 < 256» { s += i as u8; } } s }",
        None,
    ),
    ("K0354", "pub fn f(x: u8) -> u8 { let y = x; «y == 1»; y }", None),
    ("K0354", "pub stream f(x: u8) -> u8 { state z: u8 = 0; «z <= x»; z }", None),
    ("K0354", "fn g(x: u8) -> u8 { x } pub fn f(x: u8) -> u8 { «g(x)»; x }", None),
    # Of a generic function: where all instances are at fault.
    (
        "K0351",
        "fn g<N>(a: [u8; N]) -> u8 { «a[0] << (N + 6)» } pub fn f(a: [u8; 2]) -> u8 { g(a) + g([1; 3]) }",
        None,
    ),
)

#: Programs in which nothing is to be warned about.
SILENT: tuple[str, ...] = (
    "pub fn f(_x: u8) -> u8 { let _y = 1; let _ = 2; 3 }",
    "fn _g() -> u8 { 1 } const _N: u8 = 1; type _T = u8; struct _S { a: u8 } pub fn f(x: u8) -> u8 { x }",
    # A module for others: nothing of it is exported.
    "fn g(x: u8) -> u8 { x } const N: u8 = 1;",
    # What cannot be exported is for others to import.
    "fn g<N>(x: [u8; N]) -> u8 { h(x[0]) } fn h(x: u8) -> u8 { x } pub fn f(x: u8) -> u8 { x }",
    "fn g(x: u8) -> u8 { x } pub fn f(x: u8) -> u8 { x } test \"t\" { assert_eq(g(1), 1); }",
    "const N: u32 = 4; type T = [u8; N]; struct S { a: T } pub fn f(x: S) -> u8 { x.a[0] }",
    "use dsp; pub fn f(x: u8) -> u8 { dsp::window(x) }",
    "use dsp::window; pub fn f(x: u8) -> u8 { window(x) }",
    "use dsp::TAPS; pub fn f(x: [u8; TAPS]) -> u8 { x[0] }",
    "fn g(a: &mut [u8; 2]) { a[0] = 1; } pub fn f() -> u8 { let mut a = [0; 2]; g(&mut a); a[0] }",
    "pub fn f(x: [u8; 4]) -> u32 { let n = len(x); n }",
    "pub fn f(x: [u8; 4], i: u2) -> u8 { let mut s = x; s[i] += 1; s[0] }",
    "struct S { a: u8 } pub fn f(x: u8) -> S { let a = x; S { a } }",
    "pub fn f(x: u8) -> u8 { let mut s = 0; for i in 0..4 { for j in i..4 { s += x + j as u8; } } s }",
    # Constants and sizes are there to be changed.
    "const WIDE: u32 = 0; pub fn f(x: u8) -> u8 { if WIDE > 0 { x } else { 1 } }",
    "const N: u32 = 4; pub fn f(x: u8) -> u8 { let mut s = x; for i in 0..N { if i < 8 { s += 1; } } s }",
    "fn g<N>(a: [u8; N]) -> u8 { if N > 2 { a[0] } else { 1 } } pub fn f(a: [u8; 2]) -> u8 { g(a) }",
    "fn g<N>(a: [u8; N], x: u32) -> u8 { match x { N => a[0], 2 => 3, _ => 5 } } "
    "pub fn f(a: [u8; 2], x: u32) -> u8 { g(a, x) + g([1; 3], x) }",
    # Only some instances, or some iterations, are at fault.
    "fn g<N>(a: [u8; N]) -> u8 { a[0] << (N + 5) } pub fn f(a: [u8; 2]) -> u8 { g(a) + g([1; 3]) }",
    "pub fn f(x: u8) -> u8 { let mut s = x; for i in 4..12 { s ^= x << i; } s }",
    "pub fn f(x: u8) -> u8 { let mut s = x; for i in 0..8 { for j in i..4 { s += j as u8; } } s }",
    # Effects and steps are worth a statement.
    "stream g(x: u8) -> u8 { x } pub stream f(x: u8) -> u8 { state h: g; h.step(x); x }",
    "fn g(a: &mut u8) -> u8 { a = 1; 2 } pub fn f(x: u8) -> u8 { let mut y = x; g(&mut y); y }",
    "pub fn f(x: u8) -> u8 { match x { 0 => 1, n => n } }",
)

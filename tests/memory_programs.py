"""Streams that keep memories: reads and writes of one item and of neighbouring ones meet in every way."""
from __future__ import annotations

COUNTED = """
pub stream counted(bucket: u8) -> u32 {
    state count: [u32; 256] = [0; 256];
    let before = count[bucket];
    count[bucket] = before + 1;
    before
}
"""
CONDITIONAL = """
pub stream conditional(a: u6, x: i12, go: bool, half: bool) -> i12 {
    state m: [i12; 64] = [5; 64];
    let before = m[a];
    if go {
        m[a] = if half { before - x } else { x };
    }
    before
}
"""
EITHER = """
pub stream either(a: u6, b: u6, x: u9, side: bool) -> u9 {
    state m: [u9; 64] = [0; 64];
    if side {
        m[a] = x;
    } else {
        let old = m[b];
        m[b] = old + x;
    }
    m[a]
}
"""
READ_BEHIND = """
pub stream read_behind(a: u7, b: u7, x: u16) -> (u16, u16) {
    state m: [u16; 128] = [7; 128];
    let first = m[b];
    m[a] = x + first;
    (first, m[b])
}
"""
TWO_WRITES = """
pub stream two_writes(a: u5, b: u5, x: u20) -> u20 {
    state m: [u20; 32] = [0; 32];
    m[a] = x;
    let y = m[b];
    m[b] = y + 1;
    y
}
"""
TABLE = """
pub stream started(a: u5, x: u19, go: bool) -> u19 {
    state m: [u19; 30] = [
        3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7
    ];
    let at = min(a, 29);
    let before = m[at];
    if go { m[at] = before * 3 + x; }
    before
}
"""
PLANE = """
pub stream plane(row: u3, column: u4, x: u7) -> u7 {
    state m: [u7; 6, 15] = [1; 6, 15];
    let r = min(row, 5);
    let c = min(column, 14);
    let before = m[r, c];
    m[r, c] = before ^ x;
    before
}
"""
BANKS = """
pub stream banks(x: u8) -> (u8, u8) {
    state line: [u8; 2, 40] = [0; 2, 40];
    state at: u6 = 0;
    let a = line[0, at];
    let b = line[1, at];
    line[0, at] = b;
    line[1, at] = x;
    if at == 39 { at = 0; } else { at += 1; }
    (a, b)
}
"""
FLAGS = """
pub stream flags(a: u10) -> bool {
    state seen: [bool; 1024] = [false; 1024];
    let before = seen[a];
    seen[a] = true;
    before
}
"""
FLOATS = """
pub stream floats(a: u5, x: f16) -> f16 {
    state m: [f16; 32] = [1.5; 32];
    let sum = m[a] + x;
    m[a] = sum;
    sum
}
"""
FIXED = """
pub stream fixed(a: u6, x: fix<12, 4>) -> fix<12, 4> {
    state m: [fix<12, 4>; 64] = [0.5; 64];
    let before = m[a];
    m[a] = before + x;
    before
}
"""
LOOPED = """
pub stream looped(x: u4) -> u12 {
    state m: [u12; 64] = [0; 64];
    let mut total: u12 = 0;
    for k in 0..2 {
        let at = (x as u6) + ((k * 16) as u6);
        let old = m[at];
        m[at] = old + 1;
        total += old;
    }
    total
}
"""
FILE = """
pub stream file(a: u4, b: u4, x: u32, go: bool) -> (u32, u32) {
    state m: [u32; 16] = [9; 16];
    let first = m[a];
    if go { m[b] = x + first; }
    (first, m[a])
}
"""

DEEP = """
pub stream deep(a: u15, x: u3, near: bool) -> u3 {
    state m: [u3; 20000] = [5; 20000];
    let at = if near { a & 15 } else { min(a, 19999) };
    let before = m[at];
    m[at] = x ^ before;
    before
}
"""
NIBBLES = """
pub stream nibbles(a: u12, b: u12, x: u7, near: bool) -> u7 {
    state m: [u7; 4096] = [100; 4096];
    let before = m[if near { b & 15 } else { b }];
    m[if near { a & 15 } else { a }] = x + before;
    before
}
"""
BYTES = """
pub stream bytes(x: u12, up: bool) -> u12 {
    state line: [u12; 1500] = [77; 1500];
    state at: u11 = 0;
    let before = line[at];
    line[at] = before + x;
    if at == 1499 { at = 0; } else { at += 1; }
    before
}
"""
SOURCES = {
    "counted": COUNTED, "conditional": CONDITIONAL, "either": EITHER, "read_behind": READ_BEHIND,
    "two_writes": TWO_WRITES, "started": TABLE, "plane": PLANE, "banks": BANKS, "flags": FLAGS,
    "floats": FLOATS, "fixed": FIXED, "looped": LOOPED, "file": FILE,
}
"""Programs by the name of the one stream in each."""
BLOCKS = {**SOURCES, "deep": DEEP, "nibbles": NIBBLES, "bytes": BYTES}
"""The same, and memories of every shape of a block RAM."""

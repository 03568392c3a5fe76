"""Float programs in hardware: the flat graph and the cells against the interpreter, on edge-heavy inputs."""
from __future__ import annotations

from pathlib import Path

import pytest

from kera_hw.driver.session import load_program, single_export_graph

from .hardware_support import check_graph

PROGRAMS = {
    "state": """
pub stream biquad(x: f16) -> f16 {
    state z1: f16 = 0.0;
    state z2: f16 = 0.0;
    let y = fma(0.2929, x, z1);
    z1 = fma(0.5858, x, fma(-0.0, y, z2));
    z2 = fma(0.2929, x, -0.1716 * y);
    y
}
""",
    "visible NaN": """
pub fn mix(a: [f16; 3], c: bool) -> (f16, f16, u16, [f16; 3]) {
    (if c { -a[0] } else { abs(a[1]) }, copysign(a[0], a[1]), bitcast::<u16>(-a[0]), relu(a))
}
""",
    "orders": """
pub fn sums(a: [bf16; 3], b: [bf16; 3]) -> (bf16, bf16, bf16, bf16, bf16) {
    (sum(a, order: sequential), sum(a, order: tree), dot(a, b), mean(b), prod(a))
}
""",
    "extremes": """
pub fn ends(a: [f16; 3]) -> (f16, f16, u32, u32) { (min(a), max(a), argmin(a), argmax(a)) }
""",
    "unfused": """
pub fn mm(a: [bf16; 1, 2], b: [bf16; 2, 2]) -> [bf16; 1, 2] { matmul(a, b, mul: unfused) }
""",
    "layer": """
pub fn layer(w: [bf16; 2, 2], b: [bf16; 2], x: [bf16; 2]) -> [bf16; 2] {
    relu(reshape::<2>(matmul(w, reshape::<2, 1>(x))) + b)
}
""",
    "pools": """
pub fn pools(x: [bf16; 1, 2, 2]) -> ([bf16; 1, 2, 2], [bf16; 1, 2, 2]) {
    (avg_pool2d(x, size: 2, stride: 2, pad: 1), max_pool2d(x, size: 3, stride: 1, pad: 1))
}
""",
    "constants": """
pub fn scaled(x: f32) -> (f32, f32, f32, bool) { (x * 0.25, x * 3.0, x + 1.0, x < 0.0) }
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, tmp_path: Path) -> None:
    path = tmp_path / "program.kera"
    path.write_text(PROGRAMS[name])
    loaded = load_program(path)
    assert loaded.graph is not None, [item.message for item in loaded.diagnostics]
    check_graph(single_export_graph(loaded.graph, loaded.graph.exports[0]), seed=3, items=30)

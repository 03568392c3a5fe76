"""Products of matrices and their like, planned as such: a tile of results in registers, a panel in the cache.

What is looked for: two parallel loops around one that carries a sum, in which one load moves with the outer
loop (rows) and one with the inner (columns). A vector of columns is loaded once for all rows of the tile, an
element of a row once for all its columns; every sum still adds in its own order. The columns that a tile
reads are copied side by side first, where many rows read them.

After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008.
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, prod

from kera_hw.loops.program import (
    Alloc,
    Block,
    For,
    Load,
    LoopProgram,
    Op,
    Statement,
    Var,
    blocks_of,
    statements,
)
from kera_hw.loops.transforms.plan import Step, apply_step
from kera_hw.loops.transforms.planner import Planned
from kera_hw.loops.transforms.reason import Refused, loop_named
from kera_hw.types import FloatType, IntType, numpy_dtype

_LEAST_ROUNDS = 4
"""Of the sum: below, there is little to share."""
_ROWS_TO_PACK, _ROWS_TO_PACK_NEAR = 16, 128
"""That read a panel before copying it is worth it, and where rows of the panel are less than a page apart."""
_PAGE_BYTES = 4096
_MOST_VECTORS = 4
"""Of columns in a tile."""
_WORK_PER_LOAD = 1.25
"""Additions to a sum for each load, above which loads are no longer in the way."""
_MOST_STATEMENTS = 16
"""Of one round of the sum: more is no product."""
_LEAST_LANES = 4
"""Of vectors that are shorter than the machine's."""
_MOST_WRITTEN = 4
"""Rounds of the innermost of several loops of a sum that are written out, so that there is less to count."""
_EVENLY = 0.85
"""Of the rows that registers hold for so many to be taken, if then none are left over."""


@dataclass(frozen=True, slots=True)
class Registers:
    """A machine's vectors: how many, of how many bits; ``fused``: whether a product is added at once.

    ``engine``: that one translates the code once more. It has no masks, and fetches all that a stretch of
    code reads before it computes, so that a loop written out has fewer registers.
    """

    count: int
    bits: int
    fused: bool = True
    engine: bool = False


@dataclass(frozen=True, slots=True)
class _Nest:
    """``rows`` and ``columns`` are parallel, ``panel`` is read by columns. ``between``: parallel loops
    between the two. ``sums``: loops, each the body of the one before, that carry one value through all terms.
    """

    rows: For
    columns: For
    sums: tuple[For, ...]
    panel: str
    widest_bits: int
    between: int = 0


def tiled_products(program: LoopProgram, registers: Registers) -> Planned:
    """The program with every such nest tiled, and the steps that this took."""
    tiler = _Tiler(program, registers)
    tiler.separate()
    for nest in list(_nests(program.body)):
        tiler.tile(nest, registers)
    return Planned(program, tiler.program, tuple(tiler.steps))


def _nests(block: Block) -> list[_Nest]:
    found: list[_Nest] = []
    for statement in block.body:
        nest = _nest(statement)
        if nest is not None:
            found.append(nest)
            continue
        for inner in blocks_of(statement):
            found += _nests(inner)
    return found


def _nest(statement: Statement) -> _Nest | None:
    """Rows, and columns within, with nothing but parallel loops between."""
    if not isinstance(statement, For) or not statement.parallel:
        return None
    inner, between = statement, 0
    while len(inner.body.body) == 1:
        columns = inner.body.body[0]
        found = _nest_of(statement, columns)
        if found is not None:
            return replace(found, between=between)
        if not isinstance(columns, For) or not columns.parallel:
            return None
        inner, between = columns, between + 1
    return None


def _nest_of(statement: For, columns: Statement) -> _Nest | None:
    """The nest of two loops, of which the inner may be one among several."""
    if not isinstance(columns, For) or not columns.parallel:
        return None
    loops = [item for item in columns.body.body if isinstance(item, For)]
    if len(loops) != 1 or sum(bool(blocks_of(item)) for item in columns.body.body) != 1:
        return None
    sums = _sums(loops[0])
    body = sums[-1].body.body
    if prod(loop.count for loop in sums) < _LEAST_ROUNDS or len(body) > _MOST_STATEMENTS:
        return None
    if any(len(loop.carried) != 1 for loop in sums) or not all(isinstance(item, Load | Op) for item in body):
        return None
    moves = [(item, _moving(item, statement.var), _moving(item, columns.var))
             for item in body if isinstance(item, Load)]
    by_rows = [item for item, row, column in moves if row and not column]
    by_columns = [item for item, row, column in moves if column == 1 and not row]
    if len(moves) != 2 or len(by_columns) != 1 or (statement.count > 1 and len(by_rows) != 1):
        return None
    kinds = [sums[0].carried[0].inner.type, *(item.result.type for item in body if isinstance(item, Load))]
    widths = [kind.width_bits for kind in kinds if isinstance(kind, IntType | FloatType)]
    return _Nest(statement, columns, sums, by_columns[0].buffer, max(widths))


def _sums(loop: For) -> tuple[For, ...]:
    """A loop, and those within it that are each a whole body."""
    found = [loop]
    while len(body := found[-1].body.body) == 1 and isinstance(body[0], For):
        found.append(body[0])
    return tuple(found)


def _is_joined(statement: Statement) -> bool:
    """Whether a loop holds nothing but loops, several, and a product among them."""
    if not isinstance(statement, For) or len(statement.body.body) < 2:
        return False
    return all(isinstance(item, For) for item in statement.body.body) and has_product(statement)


def has_product(rows: For) -> bool:
    """Whether a loop has the columns of a product in its body, beside what else there may be."""
    return rows.parallel and any(_nest_of(rows, item) for item in rows.body.body)


def _moving(load: Load, var: Var) -> int:
    """By how many elements of the last axis the load moves with a loop; -1 if another axis moves."""
    factors = [dict(axis.terms).get(var, 0) for axis in load.index]
    return factors[-1] if factors and not any(factors[:-1]) else -1 if any(factors) else 0


@dataclass
class _Tiler:
    program: LoopProgram
    registers: Registers
    steps: list[Step] = field(default_factory=list[Step])

    def _take(self, reason: str, transform: str, *arguments: str | int) -> None:
        step = Step(transform, arguments, reason)
        self.program = apply_step(self.program, step, claimed=False)
        self.steps.append(step)

    def _inside(self, loop: str, number: int = 0) -> str:
        """The loop that is a statement of a loop's body."""
        inner = [item for item in loop_named(self.program, loop).body.body if isinstance(item, For)]
        return inner[number].var.name

    def separate(self) -> None:
        """Rows of several loops, products among them, each in a loop of its own, as far as may be."""
        while True:
            joined = next((item for item in statements(self.program.body) if _is_joined(item)), None)
            if not isinstance(joined, For):
                return
            try:
                self._take("each product has rows of its own", "fission", joined.var.name, 1)
            except Refused:
                return

    def tile(self, nest: _Nest, registers: Registers) -> None:
        before = self.program, list(self.steps)
        try:
            for _ in range(nest.between):
                self._take("a row of an image at a time", "interchange", nest.rows.var.name)
            self._tile(nest.rows.var.name, nest, registers.bits // nest.widest_bits)
        except Refused:
            self.program, self.steps = before

    def _tile(self, rows: str, nest: _Nest, lanes: int) -> None:
        columns = self._inside(rows)
        count = loop_named(self.program, columns).count
        if lanes > count:
            lanes = 1 << count.bit_length() - 1
            lanes = lanes if lanes >= _LEAST_LANES else 1
        vectors, tall = self._shape(count // lanes, nest.rows.count)
        width = vectors * lanes
        self._take(f"{vectors} vectors of {lanes} columns", "tile", columns, width)
        left_over: str | None = None
        if count % width:
            before = self._loops()
            self._take(f"{count % width} columns are left over", "fission", rows, 1)
            left_over = next(loop for loop in self._loops() if loop not in before)
        pieces = self._inside(rows)
        if lanes > 1:
            self._take("lanes", "tile", self._inside(pieces), lanes)
            self._take("all vectors of a tile have the same lanes", "interchange", self._inside(pieces))
        self._take("a panel of columns is for all rows", "interchange", rows)
        around = pieces
        if lanes > 1:
            self._take("lanes are for all rows", "interchange", rows)
            around = self._inside(pieces)
        # Now: pieces { lane { rows { vector { sum } } } }.
        vector = self._inside(rows)
        if lanes > 1 and nest.rows.count >= self._rows_to_pack(nest) and len(nest.sums) == 1:
            self._take("a tile's columns side by side in the cache", "pack", pieces, nest.panel)
        if vectors > 1:
            self._take("vectors of a tile side by side", "unroll_and_jam", vector, vectors)
        self._take("one tile", "unroll", self._inside(rows))
        if tall > 1:
            self._take("rows of a tile share its columns", "unroll_and_jam", rows, tall)
        if tall > 1 and nest.rows.count % tall > 1:
            rest = self._inside(around, -1)
            self._take("so do those left over", "unroll_and_jam", rest, nest.rows.count % tall)
        most = 0 if self.registers.engine else _MOST_WRITTEN
        if len(nest.sums) > 1 and nest.sums[-1].count <= most:
            inside = [item for item in statements(loop_named(self.program, around).body)
                      if isinstance(item, For) and item.carried]
            for loop in [item for item in inside if not any(map(blocks_of, item.body.body))]:
                self._take("a short loop is written out", "unroll", loop.var.name)
        if left_over is not None:
            self._tile(left_over, nest, lanes)

    def _rows_to_pack(self, nest: _Nest) -> int:
        """Rows close by are fetched ahead by the processor as they lie."""
        made = (item.buffer for item in statements(self.program.body) if isinstance(item, Alloc))
        panel = next(buffer for buffer in (*self.program.buffers, *made) if buffer.name == nest.panel)
        apart_bytes = panel.shape[-1] * numpy_dtype(panel.element).itemsize
        near = apart_bytes < _PAGE_BYTES and not self.registers.engine
        return _ROWS_TO_PACK_NEAR if near else _ROWS_TO_PACK

    def _loops(self) -> list[str]:
        """All loops, each before those within it."""
        return [item.var.name for item in statements(self.program.body) if isinstance(item, For)]

    def _shape(self, most_vectors: int, rows: int) -> tuple[int, int]:
        """Vectors and rows of a tile whose sums lie in registers, beside its columns and a row's element."""
        apart = 0 if self.registers.fused else 1
        shapes = [
            (vectors, _evenly(rows, (self.registers.count - vectors - 1 - apart) // vectors))
            for vectors in range(1, min(most_vectors, _MOST_VECTORS) + 1)
        ]
        if rows == 1:  # columns are read once, the more of them side by side the better
            shapes = [(vectors, 1) for vectors in range(1, min(most_vectors, self.registers.count // 2) + 1)]

        def worth(shape: tuple[int, int]) -> tuple[bool, bool, float]:
            vectors, tall = shape
            ratio = vectors * tall / (vectors + tall)
            return ratio >= _WORK_PER_LOAD, most_vectors % vectors == 0, ratio

        return max(shapes, key=worth)


def _evenly(rows: int, most: int) -> int:
    """Rows of a tile: as many as there may be, or some less that divide all."""
    most = min(rows, most)
    least = max(1, ceil(most * _EVENLY))
    return next((tall for tall in range(most, least - 1, -1) if rows % tall == 0), most)

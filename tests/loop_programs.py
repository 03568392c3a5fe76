"""Loop programs for tests: of exports, of random graphs, with values to run them on."""
from __future__ import annotations

import random
from itertools import pairwise

import numpy as np

from kera_hw.graph import Export
from kera_hw.graph.generate import GraphGenerator, generatable_ops
from kera_hw.interp import run_region
from kera_hw.loops.evaluator import run_program
from kera_hw.loops.program import (
    Alloc,
    Block,
    For,
    Kind,
    Load,
    LoopProgram,
    Op,
    Store,
    blocks_of,
    statements,
)
from kera_hw.loops.transforms import TRANSFORMS, Step
from kera_hw.loops.transforms.storage import MEMORIES, SPREADS
from kera_hw.numerics.arrays import Array
from kera_hw.numerics.orders import LANES
from kera_hw.ops.choosing import MAX_EXTENT, Chooser
from kera_hw.ops.sampling import random_constant
from kera_hw.types import TensorType, Type, leaf_types, numpy_dtype, shape_of


def random_export(seed: int) -> Export:
    """A graph that holds one operation for certain; every operation comes up in turn.

    In every fourth turn tensors may have several times as many elements as a sum in lanes has lanes.
    """
    below, ops = random.Random(seed).randrange, generatable_ops()
    longest = 3 * LANES if seed // len(ops) % 4 == 3 else MAX_EXTENT
    generator = GraphGenerator(below, floats=seed % 2 == 1, longest=longest)
    return generator.graph(3 + below(11), must=ops[seed % len(ops)]).exports[0]


def values_of(kind: Type, lanes: int, below: random.Random) -> Array:
    chooser, dtype = Chooser(below.randrange, (), True), numpy_dtype(kind)
    rows = [np.frombuffer(random_constant(kind, chooser), dtype.newbyteorder("<")) for _ in range(lanes)]
    return np.stack([row.astype(dtype).reshape(shape_of(kind)) for row in rows])


def inputs_of(export: Export, lanes: int, seed: int) -> tuple[list[Array], list[Array]]:
    """Random parameter leaves, and random states."""
    below = random.Random(seed)
    kinds = [kind for _, whole in export.params for kind in leaf_types(whole)]
    args = [values_of(kind, lanes, below) for kind in kinds]
    return args, [values_of(var.initial.type, lanes, below) for var in export.state]


def differing(export: Export, program: LoopProgram, lanes: int, seed: int) -> list[int]:
    """Which results (then next states) of the loop program are not the graph's, bit for bit."""
    return Reference(export, lanes, seed).differing(program)


class Reference:
    """What a graph gives on random items, for programs that should give the same."""

    def __init__(self, export: Export, lanes: int, seed: int) -> None:
        self.lanes = lanes
        self.args, self.states = inputs_of(export, lanes, seed)
        self.wanted = run_region(export.region, [*self.args, *self.states], lanes)
        self.own = len(leaf_types(export.result))  # the graph gives observations last, after the next states

    def differing(self, program: LoopProgram) -> list[int]:
        """Which results (then next states) of a loop program are not the graph's, bit for bit."""
        results, following = run_program(program, self.args, self.states, self.lanes)
        found = [*results[: self.own], *following, *results[self.own :]]
        assert len(found) == len(self.wanted)
        return [k for k, pair in enumerate(zip(self.wanted, found)) if not same_bits(*pair)]


def runs(program: LoopProgram, lanes: int = 3) -> list[bytes]:
    """What a program gives on random values of its buffers."""
    below = random.Random(1)

    def values(kind: Kind) -> list[Array]:
        buffers = program.of_kind(kind)
        types = [TensorType(item.element, item.shape) if item.shape else item.element for item in buffers]
        return [values_of(item, lanes, below) for item in types]

    results, states = run_program(program, values("param"), values("state"), lanes)
    return [array.tobytes() for array in (*results, *states)]


def same_bits(a: Array, b: Array) -> bool:
    first, second = (np.ascontiguousarray(item).view(np.uint8) for item in (a, b.reshape(a.shape)))
    return np.array_equal(first, second)


def random_step(program: LoopProgram, below: random.Random) -> Step:
    """A step with arguments that its transform might take; it may well be refused."""
    inside = list(statements(program.body))
    loops = [item for item in inside if isinstance(item, For)]
    temps = [item.buffer.name for item in inside if isinstance(item, Alloc)] or ["none"]
    buffers = [*temps, *(buffer.name for buffer in program.buffers)]
    name, count = below.choice(list(TRANSFORMS)), below.randrange
    fitting = [item for item in loops if _suits(name, item)] if below.randrange(4) else loops
    loop = below.choice(fitting or loops) if loops else None
    var, body = ("none", ()) if loop is None else (loop.var.name, list(statements(loop.body)))
    opcodes = [item.opcode for item in body if isinstance(item, Op)] or ["integer.add"]
    loaded = [item.buffer for item in body if isinstance(item, Load)] or buffers
    arguments: dict[str, tuple[str | int, ...]] = {
        "fuse": below.choice(_neighbours(program.body) or [(var, var)]),
        "fission": (var, count(1, 6)), "interchange": (var,), "tile": (var, count(1, 6)),
        "unroll": (var,), "unroll_and_jam": (var, count(2, 5)), "inline": (below.choice(temps),),
        "contract": (below.choice(temps),), "vectorise": (var, count(2, 5)),
        "parallelise": (var, below.choice(["threads", "grid", "block"])),
        "carry": (var, below.choice([item.buffer for item in body if isinstance(item, Store)] or buffers)),
        "regroup": (var, below.choice([2, 4])), "sink": (var,), "hoist": (var,),
        "split": (var, count(1, 6)), "promote": (below.choice(temps),), "fold": (),
        "clear": below.choice(_neighbours(program.body, alike=False) or [(var, var)]),
        "pack": (var, below.choice(loaded)), "place": (below.choice(buffers), below.choice(MEMORIES)),
        "bank": (below.choice(buffers), count(2), count(1, 4), below.choice(SPREADS)),
        "stream": (below.choice(buffers),), "double_buffer": (below.choice(temps),),
        "pipeline": (var, count(1, 7), below.choice(["other=1", "load=1 store=1 other=0", "other=2"])),
        "share": (var, below.choice(opcodes), count(1, 3)),
    }
    return Step(name, arguments[name])


def _suits(transform: str, loop: For) -> bool:
    """Whether a transform might take a loop, at a glance."""
    inner = sum(isinstance(item, For) for item in loop.body.body)
    match transform:
        case "interchange":
            return inner == len(loop.body.body) == 1
        case "unroll_and_jam":
            return inner == 1 and not loop.carried
        case "regroup":
            return len(loop.carried) == 1 and not inner
        case "carry":
            return any(isinstance(item, Store) for item in loop.body.body)
        case "sink":
            return inner == 1 and isinstance(loop.body.body[-1], For) and len(loop.body.body) > 1
        case "pipeline":
            return not inner
        case "vectorise" | "parallelise" | "fission":
            return not loop.carried
        case _:
            return True


def _neighbours(block: Block, alike: bool = True) -> list[tuple[str, str]]:
    """Loops that follow each other; ``alike``: with as many rounds."""
    loops = [item for item in block.body if isinstance(item, For)]
    found = [(a.var.name, b.var.name) for a, b in pairwise(loops) if a.count == b.count or not alike]
    inside = (part for item in block.body for part in blocks_of(item))
    return [*found, *(pair for part in inside for pair in _neighbours(part, alike))]

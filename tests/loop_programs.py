"""Loop programs for tests: of exports, of random graphs, with values to run them on."""
from __future__ import annotations

import random

import numpy as np

from kera_hw.graph import Export
from kera_hw.graph.generate import GraphGenerator, generatable_ops
from kera_hw.interp import run_region
from kera_hw.loops.evaluator import run_program
from kera_hw.loops.program import Alloc, For, Kind, LoopProgram, Op, statements
from kera_hw.loops.transforms import TRANSFORMS, Step
from kera_hw.loops.transforms.storage import MEMORIES, SPREADS
from kera_hw.numerics.arrays import Array
from kera_hw.ops.choosing import Chooser
from kera_hw.ops.sampling import random_constant
from kera_hw.types import TensorType, Type, leaf_types, numpy_dtype, shape_of


def random_export(seed: int) -> Export:
    """A graph that holds one operation for certain; every operation comes up in turn."""
    below, ops = random.Random(seed).randrange, generatable_ops()
    generator = GraphGenerator(below, floats=seed % 2 == 1)
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
    args, states = inputs_of(export, lanes, seed)
    wanted = run_region(export.region, [*args, *states], lanes)
    results, following = run_program(program, args, states, lanes)
    own = len(leaf_types(export.result))  # the graph gives observations last, after the next states
    found = [*results[:own], *following, *results[own:]]
    assert len(found) == len(wanted)
    return [k for k, pair in enumerate(zip(wanted, found)) if not same_bits(*pair)]


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
    """A step that fits the program's names; it may well be refused."""
    inside = list(statements(program.body))
    loops = [item.var.name for item in inside if isinstance(item, For)] or ["none"]
    temps = [item.buffer.name for item in inside if isinstance(item, Alloc)] or ["none"]
    buffers = [*temps, *(buffer.name for buffer in program.buffers)]
    opcodes = [item.opcode for item in inside if isinstance(item, Op)] or ["integer.add"]
    name, loop, count = below.choice(list(TRANSFORMS)), below.choice(loops), below.randrange
    arguments: dict[str, tuple[str | int, ...]] = {
        "fuse": (loop, loops[min(loops.index(loop) + below.randrange(1, 4), len(loops) - 1)]),
        "fission": (loop, count(1, 6)), "interchange": (loop,), "tile": (loop, count(1, 6)),
        "unroll": (loop,), "unroll_and_jam": (loop, count(2, 5)), "inline": (below.choice(temps),),
        "contract": (below.choice(temps),), "vectorise": (loop, count(2, 5)),
        "parallelise": (loop, below.choice(["threads", "grid", "block"])),
        "pack": (loop, below.choice(buffers)), "place": (below.choice(buffers), below.choice(MEMORIES)),
        "bank": (below.choice(buffers), count(2), count(1, 4), below.choice(SPREADS)),
        "stream": (below.choice(buffers),), "double_buffer": (below.choice(temps),),
        "pipeline": (loop, count(1, 7), below.choice(["other=1", "load=1 store=1 other=0", "other=2"])),
        "share": (loop, below.choice(opcodes), count(1, 3)),
    }
    return Step(name, arguments[name])

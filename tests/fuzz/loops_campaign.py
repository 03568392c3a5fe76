"""A campaign over loop programs: random graphs that reach every operation, random sequences of transforms.

    python -m tests.fuzz.loops_campaign [--cases 20000] [--seed 0] [-o bench/results/loops.json]

A case is a graph. Its loop program must give the graph's bits, and so must the program after each step of the
plan that is made for it, and after each step of a random sequence that begins somewhere within that plan. The
first and the last of these must be sound and read back from their texts. A case fails when one of this does
not hold, or when anything is raised that is neither a refusal of a transform nor K07xx. What a plan for a
processor does beyond (products in tiles, sums in registers) is tried in the same way. The result holds a
digest of all programs reached, and one of the code that was tried. `make check-long` runs it whole.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kera_hw.graph.generate import generatable_ops
from kera_hw.graph.node import regions_in_order
from kera_hw.loops.parser import parse_program
from kera_hw.loops.printer import print_program
from kera_hw.loops.program import LoopProgram, statements
from kera_hw.loops.transforms import TRANSFORMS, Refused, Step, apply_step
from kera_hw.loops.transforms.planner import planned
from kera_hw.loops.verifier import verify_loops
from kera_hw.lower.export import lower_export
from kera_hw.schedule.software.chains import chains_in_registers
from kera_hw.schedule.software.tiling import Registers, tiled_products
from kera_hw.support import KeraError
from tests.conformance.identity import digest
from tests.loop_programs import Reference, random_export, random_step

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "bench" / "results" / "loops.json"
MOST_STATEMENTS = 1000
"""Larger programs are not carried further."""
PART = 500
"""Cases after which what was seen so far is written down."""
MOST_STEPS = 40
"""Of longer plans, the program at their end is tried, and not those between."""
REGISTERS = Registers(16, 128)
"""Of a processor whose vectors are short, so that small tensors fill them."""
TRIES, LEGAL, LANES = 12, 5, 4
"""Steps tried and at most taken in a random sequence; items that programs are run on."""


@dataclass
class Tally:
    """What a campaign has seen."""

    cases: int = 0
    without_loops: int = 0
    failed: int = 0
    programs: int = 0
    planned_steps: Counter[str] = field(default_factory=Counter[str])
    random_steps: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    operations: set[str] = field(default_factory=set[str])
    failures: list[str] = field(default_factory=list[str])
    digest: bytes = b""
    """Of all programs whose text was read back, in order."""

    def reached(self, text: str) -> None:
        self.digest = hashlib.sha3_256(self.digest + text.encode()).digest()

    def to_json(self) -> dict[str, object]:
        counts = {"planned": self.planned_steps, "random": self.random_steps, "refused": self.refused}
        taken = {kind: {name: count[name] for name in TRANSFORMS} for kind, count in counts.items()}
        return {
            "cases": self.cases, "without_loops": self.without_loops, "failed": self.failed,
            "programs": self.programs, "operations": len(self.operations),
            "not_reached": sorted(set(generatable_ops()) - self.operations),
            "transforms": taken, "digest": self.digest.hex()[:32], "failures": self.failures,
        }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="A campaign over loop programs.")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", type=Path, default=RECORD)
    options = parser.parse_args(arguments)
    start, code, tally = time.process_time(), code_digest(), Tally()
    for first in range(options.seed, options.seed + options.cases, PART):
        run(min(PART, options.seed + options.cases - first), first, tally)
        seconds = time.process_time() - start
        result = {
            "command": f"python -m tests.fuzz.loops_campaign --cases {tally.cases} --seed {options.seed}",
            "code": code, "processor_seconds": round(seconds, 1),
            "cases_a_second": round(tally.cases / seconds, 1), **tally.to_json(),
        }
        options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(options.out.read_text())
    return int(bool(tally.failed))


def code_digest() -> str:
    """Of all code that lowers, transforms, verifies and evaluates loop programs."""
    roots = ("transforms.planner", "verifier", "evaluator", "parser", "printer")
    return digest([*(f"kera_hw.loops.{name}" for name in roots), "kera_hw.lower.export"], "kera_hw.lo")


def run(cases: int, seed: int, tally: Tally | None = None) -> Tally:
    """That many graphs from a seed on, added to what was seen before."""
    tally = Tally() if tally is None else tally
    for number in range(seed, seed + cases):
        try:
            _case(number, tally)
        except Exception:
            tally.failed += 1
            if len(tally.failures) < 20:
                tally.failures.append(f"{number}: {traceback.format_exc(limit=-4)}")
        tally.cases += 1
    return tally


def _case(seed: int, tally: Tally) -> None:
    export, below = random_export(seed), random.Random(seed)
    try:
        program = lower_export(export)
    except KeraError as error:
        assert all(item.code.startswith("K07") for item in error.diagnostics), error.diagnostics
        tally.without_loops += 1
        return
    for region in regions_in_order([export.region]):
        tally.operations |= {node.opcode for node in region.nodes()}
    reference = Reference(export, LANES, seed)
    _check(reference, program, tally, "as lowered")
    found = planned(program)
    steps = found.plan.steps if len(found.plan.steps) <= MOST_STEPS else ()
    stages = [program]
    for step in steps:
        stages.append(apply_step(stages[-1], step))
        tally.planned_steps[step.transform] += 1
        _check_bits(reference, stages[-1], tally, f"planned {step}")
    if steps:
        assert stages[-1] == found.after, "the plan's steps make another program than the planner"
    _check(reference, found.after, tally, "planned")
    for step, after in _for_a_processor(found.after):
        stages.append(after)
        tally.planned_steps[step.transform] += 1
        _check_bits(reference, after, tally, f"for a processor {step}")
    last = start = below.choice(stages)
    if sum(1 for _ in statements(start.body)) <= MOST_STATEMENTS:
        for step, last in _sequence(start, below, tally):
            _check_bits(reference, last, tally, str(step))
    _check(reference, last, tally, "after random steps")


def _for_a_processor(program: LoopProgram) -> Iterator[tuple[Step, LoopProgram]]:
    """What a processor's plan does to a program that is planned, a step at a time."""
    for plan in (tiled_products, chains_in_registers):
        made = plan(program, REGISTERS)
        if len(made.steps) <= MOST_STEPS:
            for step in made.steps:
                program = apply_step(program, step, claimed=False)
                yield step, program
            assert program == made.after, "the steps make another program than the planner"
        program = made.after


def _sequence(
    program: LoopProgram, below: random.Random, tally: Tally
) -> Iterator[tuple[Step, LoopProgram]]:
    """Random steps that were taken, each with the program after it."""
    taken = 0
    for _ in range(TRIES):
        step = random_step(program, below)
        try:
            after = apply_step(program, step)
        except Refused:
            tally.refused[step.transform] += 1
            continue
        if sum(1 for _ in statements(after.body)) > MOST_STATEMENTS:
            continue
        program, taken = after, taken + 1
        tally.random_steps[step.transform] += 1
        yield step, program
        if taken == LEGAL:
            return


def _check(reference: Reference, program: LoopProgram, tally: Tally, what: str) -> None:
    """Sound, and read back from its text, beside its bits."""
    faults = verify_loops(program)
    assert faults == [], f"{what}: {faults[0]}"
    text = print_program(program, places=False)
    assert parse_program(text) == program, f"{what}: its text is another program"
    _check_bits(reference, program, tally, what)
    tally.reached(text)


def _check_bits(reference: Reference, program: LoopProgram, tally: Tally, what: str) -> None:
    tally.programs += 1
    assert reference.differing(program) == [], f"{what}: other bits"


if __name__ == "__main__":
    sys.exit(main())

"""A campaign over machine code: random graphs and programs on every instruction set, against the reference.

    python -m tests.fuzz.isa_campaign [--seconds 3600] [--seed 0] [-o bench/results/isas.json]

A case is an export: a graph that holds one operation for certain, a program of loops and branches over
tensors, or one around a single loop, which may be a stream. On each instruction set that this machine has, or
has an emulator for, its code must give the interpreter's bits on 1 and on 37 items, with vectors and without;
on the best one, on three threads as well. It fails when a bit differs, when anything but a refusal (K0701) is
raised, or when the code ends the process. `make check-long` runs it for an hour.
"""
from __future__ import annotations

import argparse
import faulthandler
import json
import os
import pickle
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kera_hw.cpu_gpu.engine import best_level
from kera_hw.cpu_gpu.threaded import compile_threaded
from kera_hw.driver.session import compile_text
from kera_hw.driver.software import to_compile
from kera_hw.graph import Export, without_probes
from kera_hw.interp.exports import run_leaves
from kera_hw.numerics.arrays import Array
from kera_hw.schedule.software.layout import native_dtype
from kera_hw.support import KeraError, SourceFile
from tests.conformance.identity import digest
from tests.emulated import PROCESSORS, Processor
from tests.loop_programs import inputs_of, random_export, same_bits
from tests.process_programs import Generator

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "bench" / "results" / "isas.json"
ITEMS = (1, 37)
COMMAND = "python -m tests.fuzz.isa_campaign"
THREADS = 3
EMULATED_OF = 8
"""Of so many cases an emulator, which starts anew for each run, has one."""


@dataclass
class Tally:
    """What a campaign has seen: ``cases`` by kind, ``compared`` runs and refusals by instruction set."""

    cases: Counter[str] = field(default_factory=Counter[str])
    compared: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.cases.update(other.cases)
        self.compared.update(other.compared)
        self.refused.update(other.refused)
        self.failures += other.failures


def _program(text: str) -> Export:
    graph = compile_text(SourceFile.from_text(text), ROOT / "p.kera").graph
    assert graph is not None, text
    return to_compile(graph, graph.exports[0])


KINDS: dict[str, Callable[[int], Export]] = {
    "graph": random_export,
    "program": lambda seed: _program(Generator(seed).program()),
    "loop": lambda seed: _program(Generator(seed).single()),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", type=int, default=8, help="seeds a child process, which wrong code may end")
    parser.add_argument("-o", "--out", type=Path, default=RECORD)
    options = parser.parse_args(arguments)
    start, end = time.monotonic(), time.monotonic() + options.seconds
    tally, seed, code = Tally(), options.seed, digest(["kera_hw.cpu_gpu.threaded"], "kera_hw")
    result: dict[str, object] = {}
    while not result or time.monotonic() < end:
        tally.add(run(range(seed, seed + options.part)))
        seed += options.part
        result = {
            "command": f"{COMMAND} --seconds {options.seconds:g} --seed {options.seed}",
            "seconds": round(time.monotonic() - start, 1), "seeds": [options.seed, seed],
            "code": code, "failed": len(tally.failures),
            "cases": dict(tally.cases), "compared": dict(tally.compared), "refused": dict(tally.refused),
            "failures": tally.failures,
        }  # fmt: skip
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))
    return int(bool(tally.failures))


def run(seeds: Sequence[int], kinds: Sequence[str] = tuple(KINDS)) -> Tally:
    """All cases of some seeds, in a child process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        status = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as out:
                for seed in seeds:
                    for kind in kinds:
                        pickle.dump((kind, seed, None), out)
                        out.flush()
                        pickle.dump((kind, seed, case(kind, seed)), out)
                        out.flush()
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    tally, last = Tally(), None
    with os.fdopen(reading, "rb") as told:
        for kind, seed, found in _told(told):
            last = (kind, seed)
            if found is not None:
                tally.add(found)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        tally.failures.append(f"{last}: the process ended with {status}")
    return tally


def _told(stream: object) -> Iterator[tuple[str, int, Tally | None]]:
    while True:
        try:
            yield pickle.load(stream)  # type: ignore[arg-type] - what this process's own child has written
        except EOFError:
            return


def case(kind: str, seed: int) -> Tally:
    """One export everywhere."""
    tally = Tally(Counter({kind: 1}))
    export = without_probes(KINDS[kind](seed))
    given = [inputs_of(export, items, seed)[0] for items in ITEMS]
    wanted = [run_leaves(export, args, items) for args, items in zip(given, ITEMS)]

    def check(name: str, run: Callable[[Sequence[Array], int], Sequence[Array]] | None) -> None:
        if run is None:
            tally.refused[name] += 1
            return
        for args, right, items in zip(given, wanted, ITEMS):
            if not all(map(same_bits, right, run(args, items))):
                tally.failures.append(f"{kind} {seed} on {name}, {items} items: other bits")
        tally.compared[name] += 1

    for processor in available():
        if processor.emulator is not None and seed % EMULATED_OF:
            continue
        for vectors in (True, False) if processor.emulator is None else (True,):
            name = processor.name + ("" if vectors else " scalar")
            try:
                check(name, _runner(processor, export, vectors))
            except Exception:
                tally.failures.append(f"{kind} {seed} on {name}: {traceback.format_exc(limit=-3)}")
    if best_level() is not None:
        try:
            check("threads", _on_threads(export))
        except Exception:
            tally.failures.append(f"{kind} {seed} on threads: {traceback.format_exc(limit=-3)}")
    return tally


def available() -> list[Processor]:
    """What code can run on here."""
    found: list[Processor] = []
    for processor in PROCESSORS:
        try:
            processor.check()
        except pytest.skip.Exception:
            continue
        found.append(processor)
    return found


Run = Callable[[Sequence[Array], int], Sequence[Array]]


def _runner(processor: Processor, export: Export, vectors: bool) -> Run | None:
    try:
        made = processor.compiled(export, vectors)
    except KeraError as fault:
        assert {item.code for item in fault.diagnostics} == {"K0701"}
        return None

    def run(args: Sequence[Array], items: int) -> Sequence[Array]:
        given = [arg.view(native_dtype(buffer.element)) for arg, buffer in zip(args, made.params)]
        return processor.instance(made).run(given, items)

    return run


def _on_threads(export: Export) -> Run | None:
    level = best_level()
    assert level is not None
    try:
        made = compile_threaded(export, level, least_work=0)
    except KeraError as fault:
        assert {item.code for item in fault.diagnostics} == {"K0701"}
        return None

    def run(args: Sequence[Array], items: int) -> Sequence[Array]:
        given = [arg.view(native_dtype(buffer.element)) for arg, buffer in zip(args, made.whole.params)]
        return made.on(THREADS).run(given, items)

    return run


if __name__ == "__main__":
    sys.exit(main())

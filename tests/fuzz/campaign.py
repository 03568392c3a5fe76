"""A fuzz campaign over all that reads users' bytes: random strings, mutated programs, mutated .keg files.

    python -m tests.fuzz.campaign [--cases 100000] [--seed 1] [-o bench/results/fuzz.json]

A case fails when something is raised, when the tree's text is not the input, when an answer has neither a
product nor a diagnostic, or when it takes longer than ten seconds of processor time. Failing inputs are
written beside the result. `make check-long` runs it whole.
"""
from __future__ import annotations

import argparse
import json
import random
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kera_hw.frontend import compile_source
from kera_hw.frontend.parser import parse
from kera_hw.graph import read_keg, write_keg
from kera_hw.graph.keg_format import Section, read_container, write_container
from kera_hw.support import SourceFile

ROOT = Path(__file__).parents[2]
LIMIT_S = 10.0
# Pieces that a mutation may insert: where grammars and checkers have their corners.
PIECES = [
    b"fn ", b"stream ", b"state ", b"{", b"}", b"(", b")", b"[", b"]", b"; ", b", ", b"->", b"=>", b"..",
    b"..=", b"::<", b">>", b"as ", b"let mut ", b"while ", b", max 3 ", b"match ", b"if ", b"else ", b"0",
    b"-1", b"1i1", b"0xffff_ffff_ffff_ffff", b"1e999", b"fix<64, 64>", b"u65", b"i0", b"[i8; 0]", b"&mut ",
    b"|x| ", b"\"", b"/*", b"//", b"\xff", b"\xf0\x9f\x98\x80", b"\x00", b"\r", b"::", b"#", b"'",
    b"sum(", b"reduce(", b"shift_in(",
]


@dataclass
class Tally:
    """Counts of one kind of case."""

    cases: int = 0
    accepted: int = 0
    refused: int = 0
    failed: int = 0
    slowest_s: float = 0.0
    failures: list[str] = field(default_factory=list)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "bench" / "results" / "fuzz.json")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    tallies = run(options.cases, options.seed, options.out.parent)
    result = {
        "command": f"python -m tests.fuzz.campaign --cases {options.cases} --seed {options.seed}",
        "seconds": round(time.perf_counter() - start, 1),
        "kinds": {name: asdict(tally) for name, tally in tallies.items()},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    return int(any(tally.failed for tally in tallies.values()))


def run(cases: int, seed: int, keep: Path) -> dict[str, Tally]:
    """Half random bytes, three tenths mutated programs compiled whole, a fifth mutated .keg files."""
    rng = random.Random(seed)
    sources = [path.read_bytes() for path in programs()]
    graphs = [compile_source(SourceFile("p.kera", data), lambda _: None).graph for data in sources]
    kegs = [write_keg(graph, debug=False) for graph in graphs if graph is not None]
    half, third = cases // 2, cases * 3 // 10
    plan: dict[str, tuple[int, Callable[[], bytes], Callable[[bytes], bool]]] = {
        "random bytes": (half, lambda: rng.randbytes(rng.randrange(200)), _parse),
        "mutated programs": (third, lambda: mutate(rng, rng.choice(sources), sources), _compile),
        "mutated .keg files": (cases - half - third, lambda: damage(rng, rng.choice(kegs)), _read),
    }
    tallies: dict[str, Tally] = {}
    for name, (count, make, check) in plan.items():
        tally = tallies[name] = Tally()
        for _ in range(count):
            _one(tally, make(), check, keep)
    return tallies


def programs() -> list[Path]:
    """The project's own programs."""
    return sorted([*(ROOT / "examples").glob("*.kera"), *(ROOT / "bench" / "kernels").glob("*.kera"),
                   *(ROOT / "tests" / "programs").rglob("*.kera")])


def _one(tally: Tally, data: bytes, check: Callable[[bytes], bool], keep: Path) -> None:
    start = time.process_time()  # of this process alone: a busy or paused machine is no failure
    reason = ""
    try:
        if check(data):
            tally.accepted += 1
        else:
            tally.refused += 1
    except Exception:
        reason = traceback.format_exc(limit=-3)
    seconds = time.process_time() - start
    tally.cases += 1
    tally.slowest_s = max(tally.slowest_s, round(seconds, 3))
    if not reason and seconds > LIMIT_S:
        reason = f"took {seconds:.1f} s"
    if reason:
        tally.failed += 1
        if len(tally.failures) < 20:
            path = keep / f"fuzz-failure-{tally.failed}.bin"
            path.write_bytes(data)
            tally.failures.append(f"{path.name}: {reason}")


def _parse(data: bytes) -> bool:
    unit, diagnostics = parse(SourceFile("fuzz.kera", data))
    assert unit.node.data == data, "the tree's text is not the input"
    return not diagnostics


def _compile(data: bytes) -> bool:
    _parse(data)
    result = compile_source(SourceFile("fuzz.kera", data), lambda _: None)
    errors = [item for item in result.diagnostics if item.is_error]
    assert errors or result.graph is not None, "neither a graph nor an error"
    return not errors


def _read(data: bytes) -> bool:
    graph, diagnostics = read_keg(data)
    assert (graph is None) == bool(diagnostics), "neither a graph nor a diagnostic"
    return graph is not None


def mutate(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """A few edits: bytes changed, runs cut, doubled or moved, pieces put in, halves of programs joined."""
    out = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at, kind = rng.randrange(len(out) + 1), rng.randrange(7)
        length = rng.randrange(1, 20)
        if kind == 0 and at < len(out):
            out[at] = rng.randrange(256)
        elif kind == 1:
            del out[at : at + length]
        elif kind == 2:
            out[at:at] = out[at : at + length]
        elif kind == 3:
            out[at:at] = rng.choice(PIECES)
        elif kind == 4:
            moved = bytes(out[at : at + length])
            del out[at : at + length]
            place = rng.randrange(len(out) + 1)
            out[place:place] = moved
        elif kind == 5:
            other = rng.choice(others)
            out[at:] = other[rng.randrange(len(other)) :]
        else:
            digits = [i for i, byte in enumerate(out) if 48 <= byte <= 57]
            if digits:
                out[rng.choice(digits)] = rng.randrange(48, 58)
    return bytes(out)


def damage(rng: random.Random, data: bytes) -> bytes:
    """Flipped bytes anywhere; or one section edited and the container sealed again, past the hashes."""
    if rng.randrange(3) == 0:
        out = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        return bytes(out)
    sections = read_container(data)
    kind = rng.choice(list(sections))
    edited = bytearray(sections[kind])
    for _ in range(rng.randrange(1, 4)):
        at, choice = rng.randrange(len(edited) + 1), rng.randrange(3)
        if choice == 0 and at < len(edited):
            edited[at] = rng.randrange(256)
        elif choice == 1:
            edited[at:at] = rng.randbytes(rng.randrange(1, 4))
        else:
            del edited[at : at + rng.randrange(1, 4)]
    sections[kind] = bytes(edited)
    return write_container([Section(number, body) for number, body in sections.items()])


if __name__ == "__main__":
    sys.exit(main())

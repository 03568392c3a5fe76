"""Plans as data: transforms with arguments, applied in order, written down and read back as TOML.

A plan names the program that it was made for, but any program to which all steps apply may take it: an
engineer edits it, and sources change. A step that does not apply is told with what is in its way.
"""
from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from kera_hw.loops.claims import claims
from kera_hw.loops.printer import print_program
from kera_hw.loops.program import LoopProgram
from kera_hw.loops.transforms.carrying import carry, regroup
from kera_hw.loops.transforms.contracting import contract
from kera_hw.loops.transforms.fusing import fission, fuse
from kera_hw.loops.transforms.inlining import inline
from kera_hw.loops.transforms.jamming import unroll_and_jam
from kera_hw.loops.transforms.meeting import clear
from kera_hw.loops.transforms.moving import hoist, sink
from kera_hw.loops.transforms.nests import interchange, split, tile, unroll
from kera_hw.loops.transforms.packing import pack
from kera_hw.loops.transforms.parallel import parallelise, vectorise
from kera_hw.loops.transforms.pipelining import pipeline, share
from kera_hw.loops.transforms.reason import Refused
from kera_hw.loops.transforms.scalars import fold, promote
from kera_hw.loops.transforms.storage import bank, double_buffer, place, stream
from kera_hw.support import Diagnostic, KeraError, SourceFile, Span
from kera_hw.support.hashing import Encoder, content_hash

TRANSFORMS: dict[str, Callable[..., LoopProgram]] = {
    transform.__name__: transform for transform in (
        fuse, fission, interchange, tile, unroll, unroll_and_jam, inline, contract, vectorise, parallelise,
        carry, regroup, sink, hoist, split, clear, promote, fold,
        pack, place, bank, stream, double_buffer, pipeline, share,
    )
}
"""By name: what rewrites a program, given names, words and whole numbers. The list is closed."""

Argument = str | int


@dataclass(frozen=True, slots=True)
class Step:
    """One transform with its arguments; ``reason`` is the fact behind the choice, for people."""

    transform: str
    arguments: tuple[Argument, ...]
    reason: str = field(default="", compare=False)

    def __str__(self) -> str:
        return " ".join([self.transform, *map(_word, self.arguments)])


def _word(argument: Argument) -> str:
    text = str(argument)
    return json.dumps(text) if " " in text else text


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps for the loops of a function; ``program`` is the hash of what they were chosen for."""

    function: str = ""
    program: str = ""
    steps: tuple[Step, ...] = ()

    @property
    def hash(self) -> str:
        """Of what the plan does: its steps in order."""
        out = Encoder().uint(len(self.steps))
        for step in self.steps:
            out.text(step.transform).uint(len(step.arguments))
            for item in step.arguments:
                out.text(f"{type(item).__name__}:{item}")
        return content_hash("plan", out.finish()).hex()


def program_hash(program: LoopProgram) -> str:
    """Of everything that a program says, places in the source aside."""
    return content_hash("loops", print_program(program, places=False).encode()).hex()


def apply_step(program: LoopProgram, step: Step, claimed: bool = True) -> LoopProgram:
    """The program after one step. Raises Refused where it may not be taken.

    A transform proves that it keeps every bit. What was said before of loops and buffers must hold of the new
    program, too; ``claimed`` is whether anything was, or is now.
    """
    after = TRANSFORMS[step.transform](program, *step.arguments)
    broken = claims(after) if claimed else ()
    if broken:
        raise Refused(broken[0])
    return after


def apply_plan(program: LoopProgram, steps: Iterable[Step]) -> LoopProgram:
    """The program after all steps. Raises Refused where one may not be taken."""
    for step in steps:
        program = apply_step(program, step)
    return program


def replay(program: LoopProgram, plan: Plan, source: SourceFile | None = None) -> LoopProgram:
    """The program after a plan that was read. Raises KeraError (K0821) at the step that does not apply."""
    if plan.function and plan.function != program.name:
        raise _unusable(f"it is one for `{plan.function}`, not for `{program.name}`", source)
    before = program
    for number, step in enumerate(plan.steps, 1):
        try:
            program = apply_step(program, step)
        except Refused as error:
            notes = ["Steps apply to what those before them have made; `kera plan` shows the names."]
            if plan.program and plan.program != program_hash(before):
                notes.append("The program is another one than the plan was made for.")
            reason = f"step {number}, `{step}`, does not apply: {error}"
            raise _unusable(reason, source, number, notes) from None
    return program


# As text


def print_plan(plan: Plan) -> str:
    """The plan as TOML, a table a step."""
    lines = [f"{key} = {_toml(value)}" for key in ("function", "program") if (value := getattr(plan, key))]
    lines += [""] if lines else []
    for step in plan.steps:
        lines += ["[[step]]", f"transform = {_toml(step.transform)}"]
        lines.append(f"arguments = [{', '.join(map(_toml, step.arguments))}]")
        lines += [f"reason = {_toml(step.reason)}"] if step.reason else []
        lines.append("")
    return "\n".join(lines)


def _toml(value: Argument) -> str:
    return json.dumps(value, ensure_ascii=False)  # its strings are basic strings of TOML


def parse_plan(text: str, source: SourceFile | None = None) -> Plan:
    """The plan of a text. Raises KeraError (K0821) for any other text."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _unusable(f"it is no TOML ({error})", source) from None
    rows: object = data.pop("step", [])
    function, program = data.pop("function", ""), data.pop("program", "")
    if data or not isinstance(rows, list):
        raise _unusable("it holds something else than `[[step]]` tables, `function` and `program`", source)
    if not isinstance(function, str) or not isinstance(program, str):
        raise _unusable("`function` and `program` are texts", source)
    found = cast("list[Any]", rows)
    return Plan(function, program, tuple(_step(number, row, source) for number, row in enumerate(found, 1)))


def _unusable(
    reason: str, source: SourceFile | None, number: int = 0, notes: Iterable[str] = ()
) -> KeraError:
    """``number``: the step that is at fault."""
    span = _span_of(source, number) if source is not None else None
    end = "" if reason.endswith(".") else "."
    return KeraError([
        Diagnostic("K0821", f"The plan cannot be used: {reason}{end}", source, span, notes=tuple(notes))
    ])


def _span_of(source: SourceFile, number: int) -> Span:
    """The line that opens a step's table; the beginning for what concerns the whole plan."""
    heads = [found.span(1) for found in re.finditer(rb"(?m)^[ \t]*(\[\[[ \t]*step[ \t]*\]\])", source.data)]
    return Span(*heads[number - 1]) if 0 < number <= len(heads) else Span(0, min(1, len(source.data)))


def _step(number: int, row: object, source: SourceFile | None) -> Step:
    known = {"transform", "arguments"}
    if not isinstance(row, dict) or not known <= set(cast("dict[str, Any]", row)) <= known | {"reason"}:
        wanted = f"step {number} needs `transform` and `arguments`, may have a `reason`, and nothing else"
        raise _unusable(wanted, source, number)
    table = cast("dict[str, Any]", row)
    name, given, reason = table["transform"], table["arguments"], table.get("reason", "")
    if not isinstance(name, str) or name not in TRANSFORMS:
        there = ", ".join(TRANSFORMS)
        raise _unusable(f"step {number} names no transform; there are: {there}", source, number)
    if not isinstance(reason, str):
        raise _unusable(f"the reason in step {number} is a text", source, number)
    arguments = cast("list[Any]", given) if isinstance(given, list) else []
    wanted = [_KINDS[str(kind.annotation)] for kind in parameters_of(name)]
    if [type(item) for item in arguments] != wanted:
        takes = ", ".join(f"{'a number' if kind is int else 'a text'}" for kind in wanted)
        raise _unusable(f"`{name}` in step {number} takes {takes}", source, number)
    return Step(name, tuple(arguments), reason)


_KINDS: dict[str, type] = {"str": str, "int": int}


def parameters_of(name: str) -> list[inspect.Parameter]:
    """What a transform takes after the program."""
    return list(inspect.signature(TRANSFORMS[name]).parameters.values())[1:]

"""Plans as data: transforms with arguments, applied in order, written down and read back as TOML."""
from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kera_hw.loops.program import LoopProgram
from kera_hw.loops.transforms.fusing import contract, fission, fuse
from kera_hw.loops.transforms.nests import interchange, tile, unroll
from kera_hw.support import Diagnostic, KeraError

TRANSFORMS: dict[str, Callable[..., LoopProgram]] = {
    "fuse": fuse, "fission": fission, "interchange": interchange, "tile": tile, "unroll": unroll,
    "contract": contract,
}
"""By name: what rewrites a program, given loops and buffers by name and whole numbers."""

Argument = str | int


@dataclass(frozen=True, slots=True)
class Step:
    """One transform with its arguments."""

    transform: str
    arguments: tuple[Argument, ...]

    def __str__(self) -> str:
        return " ".join([self.transform, *map(str, self.arguments)])


def apply_plan(program: LoopProgram, steps: Iterable[Step]) -> LoopProgram:
    """The program after all steps. Raises Refused where one may not be taken."""
    for step in steps:
        program = TRANSFORMS[step.transform](program, *step.arguments)
    return program


def print_plan(steps: Sequence[Step]) -> str:
    """The plan as TOML, a table a step."""
    lines: list[str] = []
    for step in steps:
        arguments = ", ".join(f'"{item}"' if isinstance(item, str) else str(item) for item in step.arguments)
        lines += ["[[step]]", f'transform = "{step.transform}"', f"arguments = [{arguments}]", ""]
    return "\n".join(lines)


def parse_plan(text: str) -> tuple[Step, ...]:
    """The steps of a plan's text. Raises KeraError (K0821) for any other text."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _unusable(f"it is no TOML ({error})") from None
    rows = data.get("step", [])
    if set(data) - {"step"} or not isinstance(rows, list):
        raise _unusable("it holds something else than `[[step]]` tables")
    return tuple(_step(number, row) for number, row in enumerate(rows, 1))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _unusable(reason: str) -> KeraError:
    return KeraError([Diagnostic("K0821", f"The plan cannot be used: {reason}.")])


def _step(number: int, row: object) -> Step:
    if not isinstance(row, dict) or set(row) != {"transform", "arguments"}:  # pyright: ignore[reportUnknownArgumentType]
        raise _unusable(f"step {number} needs `transform` and `arguments`, and nothing else")
    name, arguments = row["transform"], row["arguments"]  # pyright: ignore[reportUnknownVariableType]
    if name not in TRANSFORMS:
        raise _unusable(f"step {number} names no transform; there are: {', '.join(sorted(TRANSFORMS))}")
    wanted = [_KINDS[str(kind.annotation)] for kind in _parameters(str(name))]  # pyright: ignore[reportUnknownArgumentType]
    given = list(arguments) if isinstance(arguments, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if [type(item) for item in given] != wanted:  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        words = ", ".join("a name" if kind is str else "a number" for kind in wanted)
        raise _unusable(f"`{name}` in step {number} takes {words}")
    return Step(str(name), tuple(given))  # pyright: ignore[reportUnknownArgumentType]


_KINDS: dict[str, type] = {"str": str, "int": int}


def _parameters(name: str) -> list[inspect.Parameter]:
    """What a transform takes after the program."""
    return list(inspect.signature(TRANSFORMS[name]).parameters.values())[1:]

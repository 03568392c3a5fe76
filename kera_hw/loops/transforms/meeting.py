"""Loops brought together: what stands between them moved away."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kera_hw.loops.contents import defined, indexing, used
from kera_hw.loops.dependences import conflicts
from kera_hw.loops.program import COUNTER, Alloc, Block, For, LoopProgram, Statement, Var
from kera_hw.loops.rewrite import changed
from kera_hw.loops.transforms.reason import Refused, plain_loop


def clear(program: LoopProgram, first: str, second: str) -> LoopProgram:
    """What stands between two loops before the first or behind the second, wherever it depends on neither.

    Behind the second goes what needs the first, or what goes there already; all else before the first.
    """
    one, two = plain_loop(program, first), plain_loop(program, second)

    def change(block: Block) -> Block | None:
        places = [place for place, item in enumerate(block.body) if item is one or item is two]
        if len(places) != 2 or block.body[places[0]] is not one:
            return None
        start, end = places
        before, behind = _sorted(block.body[start + 1 : end], one, two)
        body = (*block.body[:start], *before, one, two, *behind, *block.body[end + 1 :])
        return replace(block, body=body)

    body = changed(program.body, change)
    if body is None:
        raise Refused(f"`{first}` does not stand before `{second}` in one block.")
    return replace(program, body=body)


def _sorted(between: Sequence[Statement], one: For, two: For) -> tuple[list[Statement], list[Statement]]:
    before: list[Statement] = []
    behind: list[Statement] = []
    for item in between:
        # A declaration is needed by whoever comes first, and in nobody's way.
        if isinstance(item, Alloc) or _independent((one, *behind), item):
            before.append(item)
        elif _independent((item,), two):
            behind.append(item)
        else:
            message = f"What stands between `{one.var.name}` and `{two.var.name}` needs the one"
            raise Refused(f"{message}, and the other needs it.")
    return before, behind


def _independent(earlier: Iterable[Statement], later: Statement) -> bool:
    """Whether a statement may come before others that stand before it."""
    first, second = Block(tuple(earlier)), Block((later,))
    made = set(defined(first))
    if any(var.name in made for var in used(second) | indexing(second)):
        return False
    nothing = Var("", COUNTER)
    return not any(True for _ in conflicts(first, second, nothing, nothing, 1))

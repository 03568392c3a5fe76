"""Large state that is read and written element by element: which of it may be updated in place."""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from kera_hw.graph import Node, Ref
from kera_hw.support import CycleError, toposort

_READS = ("tensor.gather", "tensor.index", "tensor.slice")
_WRITES = ("tensor.update", "tensor.update_slice")


@dataclass(frozen=True, slots=True)
class Memory:
    """A given tensor whose one chain of updates gives a result, all else that reads it being a reader.

    ``before`` are, for each update, the nodes that read what it overwrites.
    """

    before: tuple[tuple[Node, ...], ...]
    writers: tuple[Node, ...]

    @property
    def readers(self) -> tuple[Node, ...]:
        return tuple(node for nodes in self.before for node in nodes)


def find_memories(
    results: Sequence[Ref], given: Collection[Ref], candidates: Iterable[tuple[Ref, Ref]]
) -> tuple[Memory, ...]:
    """The memories among pairs of a given tensor and the result that succeeds it."""
    users: dict[Ref, list[Node]] = {}
    for node in toposort([ref.node for ref in results if ref not in given], needs_of(given, ())):
        for ref in dict.fromkeys(node.inputs):
            users.setdefault(ref, []).append(node)
    found: list[Memory] = []
    for first, last in candidates:
        memory = _chain(users, results, first, last)
        if memory is not None and _has_order(results, given, (*found, memory)):
            found.append(memory)
    return tuple(found)


def _chain(users: dict[Ref, list[Node]], results: Sequence[Ref], first: Ref, last: Ref) -> Memory | None:
    before: list[tuple[Node, ...]] = []
    writers: list[Node] = []
    current = first
    while current != last:
        using = users.get(current, [])
        writing = [node for node in using if node.opcode in _WRITES and node.inputs[0] == current]
        reading = tuple(node for node in using if node not in writing)
        only_reads = all(node.opcode in _READS and current not in node.inputs[1:] for node in reading)
        if len(writing) != 1 or current in writing[0].inputs[1:] or not only_reads or current in results:
            return None
        before.append(reading)
        writers.append(writing[0])
        current = writing[0].out()
    after = users.get(last, [])
    if not writers or list(results).count(last) != 1 or any(node.opcode not in _READS for node in after):
        return None
    # What is read of the last state is taken out too: the next step overwrites it.
    return Memory((*before, tuple(after)), tuple(writers))


def needs_of(given: Collection[Ref], memories: Iterable[Memory]) -> Callable[[Node], list[Node]]:
    """The nodes to evaluate before a node: its operands, and the readers of what it overwrites."""
    earlier: dict[Node, tuple[Node, ...]] = {}
    for memory in memories:
        earlier.update(zip(memory.writers, memory.before))
    return lambda node: [
        *(ref.node for ref in node.inputs if ref not in given), *earlier.get(node, ())
    ]


def _has_order(results: Sequence[Ref], given: Collection[Ref], memories: Sequence[Memory]) -> bool:
    try:
        toposort([ref.node for ref in results if ref not in given], needs_of(given, memories))
    except CycleError:
        return False
    return True

"""What of a stream depends on what: its state in groups, each ready to run once those before it are known.

Values that depend on no state are known for a whole batch at once. State variables that depend on each other
form a group; groups are in order, so the values of one feed the next like inputs. A variable whose next value
does not depend on its own group is the past of something known. Most streams fall apart this way into parts
of which few are truly recurrent, and those are small.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kera_hw.graph import Export, Node, Ref, Region
from kera_hw.interp.evaluator import Tape
from kera_hw.interp.memories import Memory, find_memories
from kera_hw.interp.unfold import REPEATING, unfold
from kera_hw.support import toposort
from kera_hw.types import Type, bit_width, shape_of

LARGE_ELEMENTS = 16  # tensors of more are read within their group where what is read is smaller


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """State leaves that depend on each other, and the programs that work on them.

    ``feeds`` are the values from outside that a step needs; ``feed`` computes them from what is known before
    the group. ``advance`` gives the next leaves from (feeds, leaves), ``step`` also what is kept. ``kept``
    are the values that become known, by item: leaves as they are before the item, then results of ``step``.
    ``rows`` are those of the longest tensor that is not written element by element: a shift register forgets
    after so many items. The programs may overwrite the leaves they are given that are not kept.
    ``coarse`` is ``advance`` from other values, of fewer bits together.
    """

    leaves: tuple[int, ...]
    kinds: tuple[Type, ...]
    recurrent: bool
    feeds: tuple[Ref, ...]
    feed: Tape
    advance: Tape
    step: Tape
    kept_leaves: tuple[int, ...]
    kept: tuple[Ref, ...]
    rows: int
    coarse_feeds: tuple[Ref, ...]
    coarse_feed: Tape
    coarse: Tape

    @property
    def table_bits(self) -> int:
        """Bits of state and feeds together."""
        return sum(map(bit_width, (*self.kinds, *(ref.type for ref in self.coarse_feeds))))


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Groups in order, then the results from all that is known: inputs, then what the groups keep.

    ``inputs`` are the numbers of the parameter leaves that are known at first, those that are used.
    """

    inputs: tuple[int, ...]
    groups: tuple[Group, ...]
    results: Tape


def analyse(export: Export) -> Schedule:
    """The groups of a stream's state. State that no result depends on is left out."""
    return _Analysis(unfold(export.region), len(export.state)).schedule()


class _Analysis:
    """One region while it is taken apart; sets of state leaves are bit masks."""

    def __init__(self, region: Region, states: int) -> None:
        outs, ins = len(region.results) - states, len(region.params) - states
        self.results, self.nexts = region.results[:outs], region.results[outs:]
        self.params: dict[int, Ref] = {}
        self.reads: dict[Node, int] = {}
        self.varies: dict[Node, bool] = {}  # depends on inputs or state
        self.users: dict[Ref, list[Node]] = {}
        for node in region.nodes():
            self.reads[node], self.varies[node] = 0, node.opcode == "core.param"
            if node.opcode == "core.param":
                index = node.attr("index")
                assert isinstance(index, int)
                self.params[index] = node.out()
                self.reads[node] = 1 << (index - ins) if index >= ins else 0
            for ref in node.inputs:
                self.reads[node] |= self.reads[ref.node]
                self.varies[node] |= self.varies[ref.node]
                self.users.setdefault(ref, []).append(node)
        self.inputs = {index: ref for index, ref in sorted(self.params.items()) if index < ins}
        self.states = {index - ins: ref for index, ref in self.params.items() if index >= ins}

    def schedule(self) -> Schedule:
        known = list(self.inputs.values())
        groups: list[Group] = []
        done = 0
        for leaves in self._components():
            mask = _mask(leaves)
            done |= mask
            groups.append(self._group(leaves, mask, done, known))
            known += [*(self.states[leaf] for leaf in groups[-1].kept_leaves), *groups[-1].kept]
        return Schedule(tuple(self.inputs), tuple(groups), Tape(self.results, known))

    def _components(self) -> list[tuple[int, ...]]:
        """Groups of leaves that results depend on, each after those it depends on."""
        reach = [self.reads[ref.node] for ref in self.nexts]
        for middle in range(len(reach)):
            for leaf in range(len(reach)):
                if reach[leaf] >> middle & 1:
                    reach[leaf] |= reach[middle]
        first = {
            leaf: next(k for k in range(leaf + 1) if k == leaf or (reach[leaf] >> k & reach[k] >> leaf & 1))
            for leaf in range(len(reach))
        }
        roots = [first[leaf] for ref in self.results for leaf in _members(self.reads[ref.node])]
        order = toposort(roots, lambda head: {first[k] for k in _members(reach[head])} - {head})
        return [tuple(k for k in first if first[k] == head) for head in order]

    def _group(self, leaves: tuple[int, ...], mask: int, done: int, known: Sequence[Ref]) -> Group:
        nexts = [self.nexts[leaf] for leaf in leaves]
        params = [self.states[leaf] for leaf in leaves]
        recurrent = any(self.reads[ref.node] & mask for ref in nexts)
        kept_leaves, kept = self._kept(leaves, done) if recurrent else (leaves, ())
        feeds = self._feeds([*nexts, *kept], mask)
        given = [*feeds, *params]
        read = [(self.states[k], self.nexts[k]) for k in leaves if k not in kept_leaves]
        memories = find_memories(nexts, given, read)
        whole = find_memories([*nexts, *kept], given, read)
        coarse = self._narrowed(self._feeds(nexts, mask))
        return Group(
            leaves, tuple(ref.type for ref in nexts), recurrent,
            tuple(feeds), Tape(feeds, known),
            Tape(nexts, given, memories), Tape([*nexts, *kept], given, whole),
            tuple(kept_leaves), tuple(kept), self._rows(leaves, memories),
            tuple(coarse), Tape(coarse, known), Tape(nexts, [*coarse, *params]),
        )

    def _rows(self, leaves: Sequence[int], memories: Sequence[Memory]) -> int:
        apart = {memory.writers[-1].out() for memory in memories}
        shapes = [shape_of(self.nexts[leaf].type) for leaf in leaves if self.nexts[leaf] not in apart]
        return max((shape[0] for shape in shapes if shape), default=0)

    def _feeds(self, roots: Iterable[Ref], mask: int) -> list[Ref]:
        """The values that do not depend on the group where the computation of the roots first meets them."""
        found: dict[Ref, None] = {}
        seen: set[Node] = set()
        waiting = list(roots)
        while waiting:
            ref = waiting.pop()
            if not self.reads[ref.node] & mask:
                if self.varies[ref.node]:
                    found[ref] = None
            elif ref.node not in seen:
                seen.add(ref.node)
                waiting += ref.node.inputs
        return list(found)

    def _narrowed(self, feeds: Sequence[Ref]) -> list[Ref]:
        """Other values that the feeds follow from, where those have no more bits."""
        found = dict.fromkeys(feeds)
        changed = True
        while changed:
            changed = False
            for ref in list(found):
                if ref.node.opcode == "core.param":
                    continue
                others = {item: None for item in found if item != ref}
                wanted = {**others, **{item: None for item in ref.node.inputs if self.varies[item.node]}}
                if _bits(wanted) <= _bits(found):
                    found, changed = wanted, True
        return list(found)

    def _kept(self, leaves: tuple[int, ...], done: int) -> tuple[tuple[int, ...], tuple[Ref, ...]]:
        """What later parts need of a group: its leaves, or of large ones the small values read of them."""
        whole: list[int] = []
        small: dict[Ref, None] = {}
        for leaf in leaves:
            found = self._readings(self.states[leaf], leaves, done)
            if found is None:
                whole.append(leaf)
            else:
                small |= found
        return tuple(whole), tuple(small)

    def _readings(self, state: Ref, leaves: tuple[int, ...], done: int) -> dict[Ref, None] | None:
        """The small values that all that later parts compute from a large leaf goes through, if it does."""
        if _elements(state) <= LARGE_ELEMENTS:
            return None
        ends = {*self.results, *(ref for leaf, ref in enumerate(self.nexts) if leaf not in leaves)}
        found: dict[Ref, None] = {}
        seen: set[Ref] = {state}
        waiting = [state]
        while waiting:
            ref = waiting.pop()
            if ref in ends:
                return None
            for user in self.users.get(ref, ()):
                if self.reads[user] & ~done or user.opcode in REPEATING:
                    return None
                for k in range(len(user.types)):
                    out = user.out(k)
                    if out in seen or (out not in self.users and out not in ends):
                        continue
                    seen.add(out)
                    if _elements(out) <= LARGE_ELEMENTS:
                        found[out] = None
                    else:
                        waiting.append(out)
        return found


def _elements(ref: Ref) -> int:
    count = 1
    for extent in shape_of(ref.type):
        count *= extent
    return count


def _bits(refs: Iterable[Ref]) -> int:
    return sum(bit_width(ref.type) for ref in refs)


def _mask(leaves: Iterable[int]) -> int:
    return sum(1 << leaf for leaf in leaves)


def _members(mask: int) -> list[int]:
    return [k for k in range(mask.bit_length()) if mask >> k & 1]

"""The two descriptions of the circuit that are held against a graph: the lowered region, and a netlist."""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kera_hw.graph.node import Ref
from kera_hw.rtl.emit.verilog import Emitted
from kera_hw.rtl.formal.blocks import Block, scalar
from kera_hw.rtl.formal.circuit import Bit, Circuit
from kera_hw.rtl.formal.graph import CarriedTranslator
from kera_hw.rtl.formal.terms import Term, Terms
from kera_hw.rtl.formal.unroll import Cut, Fault, Source, Unrolling
from kera_hw.rtl.lower.design import FlatDesign
from kera_hw.rtl.techmap.scalar import is_signed
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.plan import Plan


@dataclass(frozen=True, slots=True)
class Item:
    """Patterns of an item's parameters and of the states it meets, one term a scalar."""

    inputs: tuple[Term, ...]
    states: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Made:
    """Patterns of an item's results and of the next states, and what is odd about the circuit, if anything.

    A state that the circuit does not keep, because nothing reads it, is None.
    """

    results: tuple[Term | None, ...]
    fault: str | None = None


class Implementation(Protocol):
    """A circuit that can be expressed in terms, whole or with one fault planted in it."""

    @property
    def label(self) -> str: ...

    def make(self, terms: Terms, item: Item) -> Made:
        """Its results on an item."""
        ...

    def make_faulty(self, terms: Terms, item: Item, rng: random.Random) -> Made:
        """The same after one fault chosen by ``rng``, which ``Made.fault`` describes."""
        ...

    def held(self, terms: Terms, states: Sequence[Term]) -> list[tuple[Term, Term]]:
        """States of which it relies on a fact: to be assumed of present ones, to be proved of next ones."""
        ...


class Lowered:
    """The flat region of scalar operations that hardware is made from."""

    label = "lowered graph"

    def __init__(self, flat: FlatDesign) -> None:
        self.flat = flat
        self._places = [
            Ref(node, k)
            for node in flat.region.nodes()
            if node.opcode not in ("core.param", "core.constant")
            for k in range(len(node.types))
        ]

    def make(self, terms: Terms, item: Item) -> Made:
        return Made(self._run(terms, item, None))

    def held(self, terms: Terms, states: Sequence[Term]) -> list[tuple[Term, Term]]:
        return []

    def make_faulty(self, terms: Terms, item: Item, rng: random.Random) -> Made:
        if not self._places:
            place = rng.randrange(len(self.flat.region.results))
            results = list(self._run(terms, item, None))
            results[place], bit = _flipped(terms, results[place], rng)
            return Made(tuple(results), f"bit {bit} of result {place} inverted")
        target = rng.choice(self._places)
        chosen: list[int] = []

        def change(ref: Ref, term: Term) -> Term:
            if ref != target:
                return term
            term, bit = _flipped(terms, term, rng)
            chosen.append(bit)
            return term

        results = self._run(terms, item, change)
        number = self._places.index(target)
        return Made(results, f"bit {chosen[0]} of operation {number}, `{target.node.opcode}`, inverted")

    def _run(self, terms: Terms, item: Item, change: Callable[[Ref, Term], Term] | None) -> tuple[Term, ...]:
        translator = CarriedTranslator(terms)
        given = (*item.inputs, *item.states)
        args: list[Block] = [scalar(bits) for bits in given]
        if change is None:
            results = translator.region(self.flat.region, args)
        else:
            results = translator.region(self.flat.region, args, change)
        return tuple(block.item for block in results)


def _flipped(terms: Terms, term: Term, rng: random.Random) -> tuple[Term, int]:
    bit = rng.randrange(term.width)
    return terms.bit_xor(term, terms.const(1 << bit, term.width)), bit


def _flipped_result(terms: Terms, results: Sequence[Term | None], rng: random.Random) -> Made:
    """A fault at the very end, for circuits that are nothing but wires."""
    changed = list(results)
    place = rng.choice([k for k, term in enumerate(results) if term is not None])
    term = changed[place]
    assert term is not None
    changed[place], bit = _flipped(terms, term, rng)
    return Made(tuple(changed), f"bit {bit} of result {place} inverted")


class Clocked:
    """A netlist of the design without handshake, unrolled over the item's time in it."""

    def __init__(
        self, circuit: Circuit, flat: FlatDesign, netlist: Netlist, plan: Plan, emitted: Emitted,
    ) -> None:
        self.circuit, self.flat, self.netlist, self.plan, self.emitted = circuit, flat, netlist, plan, emitted
        initiation_interval, latency = plan.initiation_interval, plan.latency_cycles
        # Late enough that the pipeline is full of other items, and a time at which one is admitted.
        self.start = initiation_interval * (latency // initiation_interval + 2)

    @property
    def label(self) -> str:
        return self.circuit.label

    def make(self, terms: Terms, item: Item) -> Made:
        return Made(self._results(self._unrolling(terms, item, None)))

    def held(self, terms: Terms, states: Sequence[Term]) -> list[tuple[Term, Term]]:
        found: list[tuple[Term, Term]] = []
        for register, leaf, state in zip(self.netlist.states, self.flat.states, states):
            if register.held is not None:
                low, high = (terms.const(bound, state.width) for bound in register.held)
                signed = is_signed(leaf.type)
                within = [terms.less(a, b, signed, or_equal=True) for a, b in ((low, state), (state, high))]
                found.append((state, terms.all_of(within)))
        return found

    def make_by(self, terms: Terms, item: Item, replace: Callable[[Term], Term]) -> Made:
        """The same with equal terms put in by ``replace`` on the way."""
        return Made(self._results(self._unrolling(terms, item, None, replace)))

    def make_faulty(self, terms: Terms, item: Item, rng: random.Random) -> Made:
        sound = self._unrolling(terms, item, None)
        self._results(sound)
        numbers = sorted({number for number, _ in sound.events})
        if not numbers:
            return _flipped_result(terms, self._results(sound), rng)
        number = rng.choice(numbers)
        cell = sound.cells[number]
        used = [
            (port, k)
            for port, bits in cell.outputs.items()
            for k, bit in enumerate(bits)
            if isinstance(bit, int)
        ]
        fault = Fault(number, *rng.choice(used))
        faulty = self._unrolling(terms, item, fault)
        text = f"bit {fault.bit} of pin {fault.port} of cell {cell.name} ({cell.kind}) inverted"
        return Made(self._results(faulty), text)

    def initial_states(self, terms: Terms) -> tuple[Term | None, ...]:
        """What the first item after power-up meets in each state register; None of one that isn't there."""
        unrolling = Unrolling(terms, self.circuit, self._others(terms, 0))
        return tuple(
            None if bits is None else self._whole(terms, k, unrolling.at(bits, self._read_time(k)))
            for k, bits in enumerate(self._state_bits())
        )

    def _whole(self, terms: Terms, state: int, bits: Term) -> Term:
        """A register's bits as those of its type, of which it may keep fewer."""
        held, width = self.netlist.states[state].held, self.flat.states[state].width_bits
        return terms.resize(bits, width, held is not None and held[0] < 0)

    def _others(self, terms: Terms, start: int) -> Source:
        """What the ports show beside the item that enters at ``start``: one an interval, and no reset."""
        other, initiation_interval = _other_source(terms, start), self.plan.initiation_interval

        def source(bus: str, time: int, width: int) -> Term:
            if bus == "rst":
                return terms.const(0, width)
            if bus == "in_valid":
                return terms.const(int(time % initiation_interval == 0), width)
            return other(bus, time, width)

        return source

    def _read_time(self, state: int) -> int:
        return self.plan.stage[self.netlist.states[state].out]

    def _state_bits(self) -> list[tuple[Bit, ...] | None]:
        return [self.circuit.net(name) for name in self.emitted.states]

    def _unrolling(
        self,
        terms: Terms,
        item: Item,
        fault: Fault | None,
        replace: Callable[[Term], Term] | None = None,
    ) -> Unrolling:
        cuts = [
            Cut(bits, self.start + self._read_time(k), item.states[k])
            for k, bits in enumerate(self._state_bits())
            if bits is not None
        ]
        other = self._others(terms, self.start)

        def source(bus: str, time: int, width: int) -> Term:
            own = time == self.start and any(leaf.bus == bus for leaf in self.flat.inputs)
            return self._bus(terms, item, bus, width) if own else other(bus, time, width)

        return Unrolling(terms, self.circuit, source, cuts, fault, replace)

    def _bus(self, terms: Terms, item: Item, bus: str, width: int) -> Term:
        leaves = sorted(
            (leaf.low, term) for leaf, term in zip(self.flat.inputs, item.inputs) if leaf.bus == bus
        )
        word = terms.concat([term for _, term in leaves])
        assert word.width == width, f"the leaves of {bus} do not fill it"
        return word

    def _results(self, unrolling: Unrolling) -> tuple[Term | None, ...]:
        terms = unrolling.terms
        end = self.start + self.plan.latency_cycles
        words = {bus: unrolling.at(self.circuit.outputs[bus], end) for bus, _ in self.flat.out_buses}
        outputs = [terms.extract(words[leaf.bus], leaf.low, leaf.width_bits) for leaf in self.flat.outputs]
        following = self.plan.initiation_interval
        states = [
            None if bits is None
            else self._whole(terms, k, unrolling.at(bits, self.start + self._read_time(k) + following))
            for k, bits in enumerate(self._state_bits())
        ]
        return (*outputs, *states)


def _other_source(terms: Terms, start: int) -> Source:
    """Inputs of other items: a variable for each bus and cycle."""
    return lambda bus, time, width: terms.var(f"{bus}@{time - start:+d}", width)

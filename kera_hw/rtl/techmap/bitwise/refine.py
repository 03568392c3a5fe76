"""A netlist's logic made smaller bit by bit, later nowhere, and in time around the states where it can be."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kera_hw.rtl.techmap import runs
from kera_hw.rtl.techmap.bitwise.aig import Aig
from kera_hw.rtl.techmap.bitwise.extract import Choice, Extract, Place, extract, sinks
from kera_hw.rtl.techmap.bitwise.lutmap import Lut, Timing, map_gates
from kera_hw.rtl.techmap.bitwise.rebuild import Rebuild
from kera_hw.rtl.techmap.bitwise.restructure import balanced, hastened, restructured
from kera_hw.schedule.fpga.bits import Bits
from kera_hw.schedule.fpga.cells import Add, Cell, Mux
from kera_hw.schedule.fpga.cells import Lut as LutCell
from kera_hw.schedule.fpga.cells.cell import wide_ps
from kera_hw.schedule.fpga.delay_model import DelayModel
from kera_hw.schedule.fpga.netlist import Netlist
from kera_hw.schedule.fpga.resource_model import netlist_luts

_CHOICES = (Choice(False, 0), Choice(True, 0), Choice(True, 5))
_MOST_BITS = 1500
"""LUT bits up to which all of a design is treated so."""
_MOST_GATES = 12_000
"""Gates up to which they are: tables become many of them."""
_FANOUT = 2
_ROUNDS = 4
_PIVOTS = 3
"""Choices by late nodes that are put before an output one after another."""
_MANY_GATES = 600
_EFFORT = 2000
"""Gates in all rounds of restructuring together."""


def refined(netlist: Netlist, model: DelayModel, clock_ps: int) -> list[tuple[str, Netlist]]:
    """The netlist in fewer LUTs that settle no later, or in some that settle sooner, if there is such.

    There are several where there are states: only a schedule tells which of them is best. Each has a name,
    by which ``refined_as`` makes it again.
    """
    if not _may_refine(netlist):
        return []
    settle = Settling(netlist, model, clock_ps)
    parts: dict[frozenset[int], tuple[int, Subnetwork]] = {}
    for number, choice in enumerate(_CHOICES):
        made = extract(netlist, choice)
        if made.inside not in parts and made.aig.gates() <= _MOST_GATES:
            parts[made.inside] = number, Subnetwork(netlist, made, settle)
    chosen = list(parts.values())
    if not chosen:
        return []
    if not netlist.states:
        chosen = [min(chosen, key=lambda item: settle.key(item[1].best()))]
    for _, part in chosen:
        part.search()
    now = settle.key(netlist)
    aims = _AIMS if netlist.states else _AIMS[:2]
    found = [(number, aim, part) for number, part in chosen for aim in aims[0]]
    found += [(number, aim, part) for rest in aims[1:] for number, part in chosen for aim in rest]
    made_of = [(f"{number} {aim}", part.aimed(aim)) for number, aim, part in found]
    return [
        (name, one) for name, one in made_of
        if one is not None and any(x < y for x, y in zip(settle.key(one), now))
    ]


def refined_as(netlist: Netlist, model: DelayModel, clock_ps: int, name: str) -> Netlist | None:
    """The one of ``refined`` that has this name; None for none."""
    number, _, aim = name.partition(" ")
    if not _may_refine(netlist) or number not in map(str, range(len(_CHOICES))) or aim not in sum(_AIMS, ()):
        return None
    made = extract(netlist, _CHOICES[int(number)])
    if made.aig.gates() > _MOST_GATES:
        return None
    part = Subnetwork(netlist, made, Settling(netlist, model, clock_ps))
    part.search()
    return part.aimed(aim)


_FRONT = 3
_AIMS = (("best", "soonest"), ("wide 0",), ("wide 1", "wide 2", "wide 3", "wide 4", "hastened"))
"""What is looked for in a part, the last only where there are states."""


def _may_refine(netlist: Netlist) -> bool:
    bits = sum(cell.width for cell in netlist.cells if isinstance(cell, LutCell | Mux))
    return 0 < bits <= _MOST_BITS


@dataclass(frozen=True, slots=True)
class Cover:
    """LUTs for outputs, and how late these are in all."""

    late_ps: float
    count: int
    aig: Aig
    luts: dict[int, Lut]
    literals: list[int]

    def key(self) -> tuple[float, int]:
        return self.late_ps, self.count


class Subnetwork:
    """What was taken apart, and its best LUTs so far."""

    def __init__(self, netlist: Netlist, made: Extract, settle: Settling) -> None:
        self.netlist = netlist
        self.made = made
        self.places = list(dict.fromkeys(
            (bit.cell, bit.low) for bits in sinks(netlist, made.inside) for bit in runs.bits(bits)
            if bit.cell is not None and bit.cell in made.inside
        ))
        wanted = settle.wanted()
        self.timing = Timing(
            [settle.arrival[place] for place in made.leaves], [wanted[place] for place in self.places],
            settle.model.route_ps(_PROBE, _FANOUT) + settle.model.logic_ps(_PROBE), settle.wide_ps(),
        )
        # Everything as soon as it can be, whatever it costs: a pipeline gets shorter, a loop faster.
        self.hurried = replace(self.timing, required_ps=[0.0] * len(self.places))
        outputs = [made.literals[place] for place in self.places]
        self.aig, self.literals = made.aig.swept(outputs, len(made.leaves))
        self._forms: list[tuple[Aig, list[int]]] = [(self.aig, self.literals)]
        self._best, self._soonest = self._narrow(self.aig, self.literals)
        self._wide: list[Cover] | None = None

    def _mapped(self, aig: Aig, literals: list[int], *timings: Timing) -> list[Cover]:
        found = map_gates(aig, literals, timings, _LUT_INPUTS)
        return [
            Cover(_lateness(luts, literals, timing), _count(luts), aig, luts, literals)
            for luts, timing in zip(found, timings)
        ]

    def _narrow(self, aig: Aig, literals: list[int]) -> list[Cover]:
        """In functions of single LUTs: the fewest in time, and the soonest."""
        return self._mapped(aig, literals, *(replace(one, wide_ps=()) for one in (self.timing, self.hurried)))

    def _try(self, aig: Aig, literals: list[int]) -> None:
        self._forms.append((aig, literals))
        best, soonest = self._narrow(aig, literals)
        self._best = min(self._best, best, key=Cover.key)
        self._soonest = min(self._soonest, soonest, key=Cover.key)

    def wide(self) -> list[Cover]:
        """The same with wide functions among them: the fewest in time; of states also those that are soonest
        all together, and some of which none is later or larger than another.

        Of many gates those alone are looked at that are best in single LUTs.
        """
        if self._wide is None:
            looped, leading = bool(self.netlist.states), (self._best.aig, self._soonest.aig)
            forms = [form for form in self._forms if form[0] in leading]
            timings = (self.timing, self.hurried) if looped else (self.timing,)
            found = [self._mapped(*form, *timings) for form in forms]
            if looped and self.aig.gates() <= _MANY_GATES:
                soonest = min((pair[1] for pair in found), key=Cover.key)
                others = [form for form in self._forms if form[0] not in leading]
                found += [self._mapped(*form, *timings) for form in others]
                self._wide = [soonest, *self._front([one for pair in found for one in pair])]
            else:
                self._wide = [min((pair[-1] for pair in found), key=Cover.key)] if looped else []
            self._wide.insert(0, min((pair[0] for pair in found), key=Cover.key))
        return self._wide

    def _front(self, found: Sequence[Cover]) -> list[Cover]:
        """By when the last output settles, and by LUTs: those that none beats in both."""

        def key(one: Cover) -> tuple[float, int]:
            arrival = _settled(one.luts, self.timing)
            return max((arrival[literal >> 1] for literal in one.literals), default=0.0), one.count

        order = sorted(found, key=key)
        front = [one for k, one in enumerate(order) if all(one.count < other.count for other in order[:k])]
        return front[:_FRONT]

    def aimed(self, aim: str) -> Netlist | None:
        """The netlist of one aim; None where it led to nothing new."""
        match aim.split():
            case ["best"]:
                return self.best()
            case ["soonest"]:
                return self.soonest()
            case ["wide", number]:
                found = self.wide()[int(number) :] if self.timing.wide_ps else []
                return self._rebuilt(found[0]) if found else None
            case _:
                return self.hastened()

    def best(self) -> Netlist:
        """In the fewest LUTs that settle in time."""
        return self._rebuilt(self._best)

    def soonest(self) -> Netlist:
        """With outputs that settle as soon as has been found."""
        return self._rebuilt(self._soonest)

    def _rebuilt(self, found: Cover) -> Netlist:
        return Rebuild(self.netlist, self.made, found.luts, dict(zip(self.places, found.literals))).run()

    def search(self) -> None:
        """Try the gates balanced, and after passes of restructuring: the more the fewer they are."""
        leaves, aig, literals = len(self.made.leaves), self.aig, self.literals
        arrival = [ps / self.timing.lut_ps for ps in self.timing.arrival_ps]
        self._try(*balanced(aig, literals, leaves, arrival))
        rounds = max(1, min(_ROUNDS, _EFFORT // max(1, aig.gates())))
        count = aig.gates()
        for _ in range(rounds):
            aig, literals = restructured(aig, literals, leaves, even=False)
            self._try(aig, literals)
            self._try(*balanced(aig, literals, leaves, arrival))
            if aig.gates() >= count:
                return
            count = aig.gates()
            aig, literals = restructured(aig, literals, leaves, even=True)

    def hastened(self) -> Netlist | None:
        """Outputs that are still late as choices by what comes last before them, if that is sooner."""
        starts = [self._soonest, self.wide()[1]] if self.timing.wide_ps else [self._soonest]
        found = [(one, sooner) for one in starts if (sooner := self._hastened(one)) is not one]
        return self._rebuilt(min((sooner for _, sooner in found), key=Cover.key)) if found else None

    def _hastened(self, found: Cover) -> Cover:
        leaves = len(self.made.leaves)
        for _ in range(_PIVOTS):
            late = self._pivots(found)
            if not late:
                break
            aig, literals = hastened(found.aig, found.literals, leaves, late)
            forms = [(aig, literals), restructured(aig, literals, leaves, even=False)]
            sooner = min((self._mapped(*form, self.hurried)[0] for form in forms), key=Cover.key)
            if sooner.key() >= found.key():
                break
            found = sooner
        return found

    def _pivots(self, found: Cover) -> dict[int, int]:
        """For every late output the last node on its longest path after which a LUT is still in time."""
        arrival = _settled(found.luts, self.timing)
        lut_ps = self.timing.lut_ps
        late: dict[int, int] = {}
        for place, (literal, wanted) in enumerate(zip(found.literals, self.timing.required_ps)):
            node = literal >> 1
            if arrival[node] <= wanted + 0.5 or node not in found.luts:
                continue
            while node in found.luts and arrival[node] + lut_ps > wanted + 0.5:
                node = max(found.luts[node].leaves, key=arrival.__getitem__, default=0)
            if node and node != literal >> 1 and arrival[node] + lut_ps <= wanted + 0.5:
                late[place] = node
        return late


_PROBE = LutCell(width=1, inputs=(), expr=("const", 0))
_LUT_INPUTS = 4


def _count(luts: dict[int, Lut]) -> int:
    """LUTs, of which a function of more inputs takes several."""
    return sum(1 << max(0, len(lut.leaves) - _LUT_INPUTS) for lut in luts.values())


def _settled(luts: dict[int, Lut], timing: Timing) -> dict[int, float]:
    """When leaves and LUTs settle."""
    arrival: dict[int, float] = {0: 0.0}
    arrival.update((k + 1, ps) for k, ps in enumerate(timing.arrival_ps))
    delay_ps = timing.delays_ps(_LUT_INPUTS)
    for node, lut in luts.items():
        last = max((arrival[leaf] for leaf in lut.leaves), default=0.0)
        arrival[node] = last + delay_ps[len(lut.leaves)]
    return arrival


def _lateness(luts: dict[int, Lut], literals: Sequence[int], timing: Timing) -> float:
    """By how much outputs settle too late, all together."""
    arrival = _settled(luts, timing)
    pairs = zip(literals, timing.required_ps)
    return sum(max(0.0, arrival[literal >> 1] - wanted - 0.5) for literal, wanted in pairs)


class Settling:
    """When the bits of a netlist settle without pipelining, and until when they should."""

    def __init__(self, netlist: Netlist, model: DelayModel, clock_ps: int) -> None:
        self.netlist = netlist
        self.model = model = model.among(netlist)
        self.budget_ps = model.usable_ps(clock_ps) - model.setup_ps
        self.arrival = self._arrivals(netlist)

    def _arrivals(self, netlist: Netlist) -> dict[Place, float]:
        model = self.model
        found: dict[Place, float] = {}
        for index, cell in enumerate(netlist.cells):
            settled = float(model.clk_to_q_ps(cell))
            route = model.route_ps(cell, _FANOUT)
            for driver, position, bit in _reads(cell):
                if driver is not None:
                    logic = model.logic_ps(cell, position)
                    settled = max(settled, found[driver, bit] + route + logic)
            for k in range(cell.width):
                found[index, k] = settled - model.early_ps(cell, k)
        return found

    def wide_ps(self) -> tuple[float, ...]:
        """Through functions of more inputs than a LUT has, where multiplexers behind LUTs are for that."""
        device = self.model.device
        base = self.model.route_ps(_PROBE, _FANOUT)
        more = range(1, device.wide_inputs - device.lut_inputs + 1)
        return tuple(float(base + wide_ps(device, doublings)) for doublings in more)

    def wanted(self) -> dict[Place, float]:
        """For every bit of the cells taken apart: no later than now, and in time for the next state."""
        model, netlist = self.model, self.netlist
        found: dict[Place, float] = dict(self.arrival)

        def need(bits: Bits, limit: float) -> None:
            for bit in runs.bits(bits):
                if bit.cell is not None:
                    place = (bit.cell, bit.low)
                    found[place] = min(found[place], limit)

        for bits in (bits for state in netlist.states for bits in state.operands()):
            need(bits, float(self.budget_ps))
        for index in range(len(netlist.cells) - 1, -1, -1):
            cell = netlist.cells[index]
            route = model.route_ps(cell, _FANOUT)
            last = min((found[index, k] + model.early_ps(cell, k) for k in range(cell.width)), default=0.0)
            for driver, position, low in _reads(cell):
                if driver is not None:
                    place = (driver, low)
                    found[place] = min(found[place], last - route - model.logic_ps(cell, position))
        return found

    def key(self, netlist: Netlist) -> tuple[float, int, float]:
        """By how much next states miss the clock (in 0.1 ns), LUTs, and when the last result settles."""
        arrival = self._arrivals(netlist)

        def last(vectors: Iterable[Bits]) -> float:
            read = (bit for bits in vectors for bit in runs.bits(bits) if bit.cell is not None)
            return max((arrival[bit.cell, bit.low] for bit in read if bit.cell is not None), default=0.0)

        miss = max(0.0, last(bits for state in netlist.states for bits in state.operands()) - self.budget_ps)
        end = last(output.bits for output in netlist.outputs)
        return round(miss / 100), netlist_luts(netlist, self.model.device), end


def _reads(cell: Cell) -> Iterator[tuple[int | None, int, int]]:
    """(cell, position in the operand, bit) of every bit a cell reads."""
    for bits in cell.operands():
        for position, bit in enumerate(runs.bits(bits)):
            yield bit.cell, position if isinstance(cell, Add) else 0, bit.low

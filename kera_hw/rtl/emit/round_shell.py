"""The controller of a loop: starts a round every few cycles, for an item as many as its loop has.

The datapath's first inputs are the flags of a round (see ``Rounds``), its first output is ``done``: the
result is on the other outputs. Everything stands still while a result waits to be taken.

A counted loop's rounds are those of one item after another, without a gap: when the last round has started,
the next item may come. A loop that ends by a condition starts rounds until the one that found the exit leaves
the pipeline; those behind it are dropped when the result is taken, and the next item may come a cycle later.
All that a round is told comes from registers, since it reaches every operand that a loop carries.

Of several units the first item goes to the first, the next to the second, and results are taken in the same
order: a unit whose result is there waits for its turn, and no item overtakes another.
"""
from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Mux, ResetSignal, Signal, Value

from kera_hw.rtl.emit.handshake import ShellSpec, StreamShell
from kera_hw.rtl.emit.rounds import Rounds


class RoundShell(StreamShell):
    """``in_valid``/``in_ready`` to ``out_valid``/``out_ready`` around the datapath of a round.

    Without a handshake nothing stalls, and an item that comes too early is ignored.
    """

    def __init__(self, spec: ShellSpec, rounds: Rounds, *, top: bool = True) -> None:
        super().__init__(spec, top=top)
        self.rounds = rounds
        self.stalls = spec.control.protocol == "stream"
        flags = len(rounds.flags)
        self.flags, self.inputs = self.inputs[:flags], self.inputs[flags:]
        self.done, *self.outputs = self.outputs

    def ports(self) -> list[Signal]:
        """All ports in the order of the Verilog module."""
        if self.stalls:
            return super().ports()
        return [self.clk, self.rst, self.in_valid, *self.inputs, self.out_valid, *self.outputs]

    def buses(self) -> tuple[list[Signal], list[Signal]]:
        """All inputs and outputs of the datapath."""
        return [*self.flags, *self.inputs], [self.done, *self.outputs]

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=True)
        holds = Signal(self.spec.latency_cycles, name="holds")
        advance = Signal(name="advance")
        ready = self.out_ready if self.stalls else Const(1)
        m.d.comb += [
            self.out_valid.eq(holds[-1] & self.done),
            advance.eq(~self.out_valid | ready if self.stalls else 1),
        ]
        build = self._counted if self.rounds.kind == "counted" else self._until
        started = build(m, holds, advance, ready)
        chain = Cat(started, holds)
        control: dict[str, Value] = self.control_inputs(lambda stage: chain[stage])
        if self.stalls:
            control["advance"] = advance
        self.datapath(m, control)
        return m

    def _counted(self, m: Module, holds: Signal, advance: Signal, ready: Value) -> Signal:
        """Whether a round starts, if the pipeline moves."""
        first, last, number = self.flags
        rounds = self.rounds.count
        started, under_way = Signal(name="started"), Signal(name="under_way")
        at_last = Signal(name="at_last", init=int(rounds == 1))
        due = self.admission(m, started, advance)
        m.d.comb += [
            started.eq(due & (under_way | self.in_valid)),
            self.in_ready.eq(advance & due & ~under_way & ~ResetSignal(allow_reset_less=True)),
            first.eq(~under_way),
            last.eq(at_last),
        ]
        count = Signal(len(number), name="count")
        m.d.comb += number.eq(count)
        with m.If(advance):
            m.d.sync += holds.eq(Cat(started, holds[:-1]))
            with m.If(started):
                m.d.sync += under_way.eq(~last)
                if self.rounds.rests:
                    ends = count == rounds - 2
                    m.d.sync += [count.eq(Mux(last | ends, 0, count + 1)), at_last.eq(~last & ends)]
                    return started
                m.d.sync += count.eq(Mux(last, 0, count + 1))
                if rounds > 1:
                    m.d.sync += at_last.eq(~last & (count == rounds - 2))
        return started

    def _until(self, m: Module, holds: Signal, advance: Signal, ready: Value) -> Signal:
        """The same for a loop that ends by a condition."""
        first, over = self.flags
        most = self.rounds.count
        started, busy, taken = Signal(name="started"), Signal(name="busy"), Signal(name="taken")
        came, beyond = Signal(name="came"), Signal(name="beyond")
        count = Signal(range(most + 1), name="count")
        due = Signal(name="due", init=1)
        interval = self.spec.initiation_interval
        m.d.comb += [
            taken.eq(self.out_valid & ready),
            first.eq(~busy),
            came.eq(self.in_valid & ~busy),
            started.eq(came | (busy & ~self.out_valid & due)),
            self.in_ready.eq(~busy & ~ResetSignal(allow_reset_less=True)),
            over.eq(beyond),
        ]
        with m.If(came):
            m.d.sync += [busy.eq(1), count.eq(1), beyond.eq(int(most == 1)), holds.eq(1)]
        with m.Elif(taken):
            m.d.sync += [busy.eq(0), beyond.eq(0), holds.eq(0)]
        with m.Elif(advance):
            m.d.sync += holds.eq(Cat(started, holds[:-1]))
            with m.If(started & ~over):
                m.d.sync += [count.eq(count + 1), beyond.eq(count == most - 1)]
        if interval > 1:
            pause = Signal(range(max(2, interval - 1)), name="pause")
            with m.If(came | (started & advance)):
                m.d.sync += [due.eq(0), pause.eq(interval - 2)]
            with m.Elif(advance & ~due):
                m.d.sync += [due.eq(~pause.any()), pause.eq((pause - 1)[: len(pause)])]
        return started


class UnitsShell(RoundShell):
    """Several such circuits, which take items in turn and give their results in the order of the items."""

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=True)
        count = self.rounds.units
        units = [RoundShell(self.spec, self.rounds, top=False) for _ in range(count)]
        into, out_of = Signal(range(count), name="into"), Signal(range(count), name="out_of")
        for k, unit in enumerate(units):
            m.submodules[f"unit_{k}"] = unit
            m.d.comb += [
                unit.in_valid.eq(self.in_valid & (into == k)),
                unit.out_ready.eq(self.out_ready & (out_of == k)),
                *(own.eq(given) for own, given in zip(unit.inputs, self.inputs)),
            ]
        m.d.comb += [
            self.in_ready.eq(Array(unit.in_ready for unit in units)[into]),
            self.out_valid.eq(Array(unit.out_valid for unit in units)[out_of]),
            *(
                shown.eq(Array(made)[out_of])
                for shown, *made in zip(self.outputs, *(unit.outputs for unit in units))
            ),
        ]
        for turn, goes in ((into, self.in_valid & self.in_ready), (out_of, self.out_valid & self.out_ready)):
            with m.If(goes):
                m.d.sync += turn.eq(Mux(turn == count - 1, 0, turn + 1))
        return m

"""A shell for designs with more ports than a package has pins: items come and go eight bits at a time.

The shell collects an item from ``serial_in`` (least significant byte first, buses in port order), offers it
to the core, and sends each result out on ``serial_out`` the same way. Both sides keep valid/ready: a byte
moves when both are high. Without a handshake, ``shift_in`` moves bytes into the input register, which the
core sees all the time; ``start`` says that it holds an item, if the core is to be told; ``capture`` takes the
results into the output register, or ``done`` says that they were, and ``shift_out`` moves that register on.
"""
from __future__ import annotations

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Instance, Module, Signal, Value

from kera_hw.rtl.emit.convert import module_verilog
from kera_hw.rtl.emit.naming import inner_name
from kera_hw.rtl.emit.ports import Port
from kera_hw.rtl.emit.verilog import Emitted

BEAT_BITS = 8


def serial_name(emitted: Emitted) -> str:
    """The shell's module name."""
    return inner_name(emitted.name, "serial")


def serial_verilog(emitted: Emitted) -> str:
    """Verilog of the shell; it instantiates the design's top module."""
    shells = {"stream": _StreamSerial, "valid": _ValidSerial, "none": _BareSerial}
    shell = shells[emitted.protocol](emitted)
    return module_verilog(shell, serial_name(emitted), shell.ports())


def _beats(ports: tuple[Port, ...]) -> int:
    return max(1, -(-sum(port.width for port in ports) // BEAT_BITS))


class _Serial(Elaboratable):
    def __init__(self, emitted: Emitted) -> None:
        self.emitted = emitted
        self.in_beats, self.out_beats = _beats(emitted.data_inputs), _beats(emitted.data_outputs)
        self.clk, self.rst = Signal(name="clk"), Signal(name="rst")
        self.serial_in = Signal(BEAT_BITS, name="serial_in")
        self.serial_out = Signal(BEAT_BITS, name="serial_out")
        self.collected = Signal(BEAT_BITS * self.in_beats, name="collected")
        self.results = [Signal(port.width, name=port.name) for port in emitted.data_outputs]
        self.sending = Signal(BEAT_BITS * self.out_beats, name="sending")

    def core(self, **control: Value) -> Instance:
        """The design, its inputs cut from the collected bits."""
        ports: dict[str, Value] = {"i_clk": self.clk, **control}
        low = 0
        for port in self.emitted.data_inputs:
            ports[f"i_{port.name}"] = self.collected[low : low + port.width]
            low += port.width
        ports |= {f"o_{signal.name}": signal for signal in self.results}
        return Instance(self.emitted.name, **ports)

    def domain(self, module: Module, *, reset: bool) -> None:
        """The clock, and the reset where there is one."""
        module.domains.sync = sync = ClockDomain("sync", reset_less=not reset)
        sync.clk = self.clk
        if reset:
            sync.rst = self.rst
        module.d.comb += self.serial_out.eq(self.sending[:BEAT_BITS])

    def collect(self) -> Value:
        """The input register after one more beat."""
        return Cat(self.collected, self.serial_in)[BEAT_BITS:]


class _StreamSerial(_Serial):
    def __init__(self, emitted: Emitted) -> None:
        super().__init__(emitted)
        self.in_valid, self.in_ready = Signal(name="serial_in_valid"), Signal(name="serial_in_ready")
        self.out_valid, self.out_ready = Signal(name="serial_out_valid"), Signal(name="serial_out_ready")

    def ports(self) -> list[Signal]:
        """All pins."""
        return [
            self.clk, self.rst, self.serial_in, self.in_valid, self.in_ready,
            self.serial_out, self.out_valid, self.out_ready,
        ]

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=True)
        have = Signal(range(self.in_beats + 1), name="beats_collected")
        left = Signal(range(self.out_beats + 1), name="beats_to_send")
        full, idle = Signal(name="item_complete"), Signal(name="sender_idle")
        core_ready, core_valid = Signal(name="core_in_ready"), Signal(name="core_out_valid")
        m.d.comb += [
            full.eq(have == self.in_beats), self.in_ready.eq(~full & ~self.rst),
            idle.eq(~left.any()), self.out_valid.eq(~idle),
        ]
        with m.If(full & core_ready):
            m.d.sync += have.eq(0)
        with m.Elif(self.in_valid & self.in_ready):
            m.d.sync += [have.eq((have + 1)[: len(have)]), self.collected.eq(self.collect())]
        with m.If(idle & core_valid):
            m.d.sync += [left.eq(self.out_beats), self.sending.eq(Cat(*self.results))]
        with m.Elif(self.out_valid & self.out_ready):
            m.d.sync += [left.eq((left - 1)[: len(left)]), self.sending.eq(self.sending[BEAT_BITS:])]
        m.submodules.core = self.core(
            i_rst=self.rst, i_in_valid=full, o_in_ready=core_ready, o_out_valid=core_valid, i_out_ready=idle,
        )
        return m


class _ShiftedSerial(_Serial):
    """Both registers are moved from outside."""

    def __init__(self, emitted: Emitted) -> None:
        super().__init__(emitted)
        self.shift_in, self.shift_out = Signal(name="shift_in"), Signal(name="shift_out")

    def shifts(self, module: Module, capture: Value) -> None:
        """The registers; ``capture`` takes the core's results."""
        with module.If(self.shift_in):
            module.d.sync += self.collected.eq(self.collect())
        with module.If(capture):
            module.d.sync += self.sending.eq(Cat(*self.results))
        with module.Elif(self.shift_out):
            module.d.sync += self.sending.eq(self.sending[BEAT_BITS:])


class _ValidSerial(_ShiftedSerial):
    def __init__(self, emitted: Emitted) -> None:
        super().__init__(emitted)
        self.start, self.done = Signal(name="start"), Signal(name="done")

    def ports(self) -> list[Signal]:
        """All pins."""
        return [
            self.clk, self.rst, self.serial_in, self.shift_in, self.start,
            self.done, self.shift_out, self.serial_out,
        ]

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=True)
        self.shifts(m, self.done)
        m.submodules.core = self.core(i_rst=self.rst, i_in_valid=self.start, o_out_valid=self.done)
        return m


class _BareSerial(_ShiftedSerial):
    def __init__(self, emitted: Emitted) -> None:
        super().__init__(emitted)
        self.capture = Signal(name="capture")

    def ports(self) -> list[Signal]:
        """All pins."""
        return [self.clk, self.serial_in, self.shift_in, self.capture, self.shift_out, self.serial_out]

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        self.domain(m, reset=False)
        self.shifts(m, self.capture)
        m.submodules.core = self.core()
        return m

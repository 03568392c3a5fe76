"""A shell for designs with more ports than a package has pins: beats come and go eight bits at a time.

The shell collects a beat from ``serial_in`` (least significant byte first, buses in port order, then the bit
that marks a last beat), offers it to the core, and sends each result out on ``serial_out`` the same way. Both
sides keep valid/ready: a byte moves when both are high. A design of several channels has pins for each, such
as ``serial_in_image``. Without a handshake, ``shift_in`` moves bytes into the input register, which the
core sees all the time; ``start`` says that it holds an item, if the core is to be told; ``capture`` takes the
results into the output register, or ``done`` says that they were, and ``shift_out`` moves that register on.
"""
from __future__ import annotations

from amaranth.hdl import Cat, ClockDomain, Elaboratable, Instance, Module, Signal, Value

from kera_hw.rtl.emit.convert import module_verilog
from kera_hw.rtl.emit.naming import inner_name
from kera_hw.rtl.emit.ports import INTERRUPT, Bundle, Port
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


class _StreamSerial(Elaboratable):
    """Collects and sends beats for every bundle of the design."""

    def __init__(self, emitted: Emitted) -> None:
        self.emitted, self.plan = emitted, emitted.port_plan
        self.clk, self.rst = Signal(name="clk"), Signal(name="rst")
        self.pins: dict[str, tuple[Signal, Signal, Signal]] = {}
        for bundle in self.plan.bundles:
            name = f"serial_{bundle.channel.name}"
            self.pins[bundle.channel.name] = (
                Signal(BEAT_BITS, name=name), Signal(name=f"{name}_valid"), Signal(name=f"{name}_ready")
            )
        self.interrupt = Signal(name=INTERRUPT)

    def ports(self) -> list[Signal]:
        """All pins."""
        alone = [self.interrupt] if self.plan.interface == "axi-lite" else []
        return [self.clk, self.rst, *(pin for pins in self.pins.values() for pin in pins), *alone]

    def elaborate(self, platform: object) -> Module:
        """Called by Amaranth."""
        m = Module()
        m.domains.sync = sync = ClockDomain("sync")
        sync.clk, sync.rst = self.clk, self.rst
        wires: dict[str, Value] = {f"i_{self.plan.clock}": self.clk}
        reset = self.plan.reset
        if reset is not None:
            wires[f"i_{reset.name}"] = ~self.rst if reset.active_low else self.rst
        for bundle in self.plan.bundles:
            side = self._collect if bundle.channel.direction == "input" else self._send
            wires |= side(m, bundle)
        if self.plan.interface == "axi-lite":
            wires[f"o_{INTERRUPT}"] = self.interrupt
        m.submodules.core = Instance(self.emitted.name, **wires)
        return m

    def _collect(self, m: Module, bundle: Bundle) -> dict[str, Value]:
        """The beats that go into the design, from their pins."""
        name, beats = bundle.channel.name, _bytes(bundle)
        data, valid, ready = self.pins[name]
        collected = Signal(BEAT_BITS * beats, name=f"{name}_collected")
        have, full = Signal(range(beats + 1), name=f"{name}_have"), Signal(name=f"{name}_complete")
        taken = Signal(name=f"{name}_wanted")
        m.d.comb += [full.eq(have == beats), ready.eq(~full & ~self.rst)]
        with m.If(full & taken):
            m.d.sync += have.eq(0)
        with m.Elif(valid & ready):
            m.d.sync += [have.eq((have + 1)[: len(have)]), collected.eq(Cat(collected, data)[BEAT_BITS:])]
        wires: dict[str, Value] = {f"i_{bundle.valid}": full, f"o_{bundle.ready}": taken}
        low = 0
        for port in _moved(bundle):
            wires[f"i_{port.name}"] = collected[low : low + port.width]
            low += port.width
        return wires

    def _send(self, m: Module, bundle: Bundle) -> dict[str, Value]:
        """The beats that come out of the design, to their pins."""
        name, beats = bundle.channel.name, _bytes(bundle)
        data, valid, ready = self.pins[name]
        results = [Signal(port.width, name=port.name) for port in _moved(bundle)]
        sending = Signal(BEAT_BITS * beats, name=f"{name}_sending")
        left, idle = Signal(range(beats + 1), name=f"{name}_left"), Signal(name=f"{name}_idle")
        offered = Signal(name=f"{name}_offered")
        m.d.comb += [data.eq(sending[:BEAT_BITS]), idle.eq(~left.any()), valid.eq(~idle)]
        with m.If(idle & offered):
            m.d.sync += [left.eq(beats), sending.eq(Cat(*results))]
        with m.Elif(valid & ready):
            m.d.sync += [left.eq((left - 1)[: len(left)]), sending.eq(sending[BEAT_BITS:])]
        wires: dict[str, Value] = {f"o_{bundle.valid}": offered, f"i_{bundle.ready}": idle}
        return wires | {f"o_{signal.name}": signal for signal in results}


def _moved(bundle: Bundle) -> tuple[Port, ...]:
    """What moves with a beat."""
    last = () if bundle.last is None else (Port(bundle.last, bundle.channel.direction, 1),)
    return (*bundle.payload, *last)


def _bytes(bundle: Bundle) -> int:
    """Bytes of a beat on the pins."""
    return _beats(_moved(bundle))


class _ShiftedSerial(Elaboratable):
    """Both registers are moved from outside."""

    def __init__(self, emitted: Emitted) -> None:
        self.emitted = emitted
        in_beats, out_beats = _beats(emitted.data_inputs), _beats(emitted.data_outputs)
        self.clk, self.rst = Signal(name="clk"), Signal(name="rst")
        self.serial_in = Signal(BEAT_BITS, name="serial_in")
        self.serial_out = Signal(BEAT_BITS, name="serial_out")
        self.collected = Signal(BEAT_BITS * in_beats, name="collected")
        self.results = [Signal(port.width, name=port.name) for port in emitted.data_outputs]
        self.sending = Signal(BEAT_BITS * out_beats, name="sending")
        self.shift_in, self.shift_out = Signal(name="shift_in"), Signal(name="shift_out")

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

    def shifts(self, module: Module, capture: Value) -> None:
        """The registers; ``capture`` takes the core's results."""
        with module.If(self.shift_in):
            module.d.sync += self.collected.eq(Cat(self.collected, self.serial_in)[BEAT_BITS:])
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

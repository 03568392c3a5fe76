"""Delay lines of a datapath: instances of the helper module ``kera_delay``, or Amaranth's own memories."""
from __future__ import annotations

from amaranth.hdl import (
    Array,
    Cat,
    ClockSignal,
    Const,
    Instance,
    MemoryData,
    MemoryInstance,
    Module,
    Signal,
    Value,
)

from kera_hw.rtl.emit.styles import Style
from kera_hw.rtl.emit.text import constant
from kera_hw.schedule.fpga.lut_ram import counter
from kera_hw.schedule.plan import DelayLine


def delay_instance(line: DelayLine, name: str, enable: str, taken: str, shown: str) -> list[str]:
    """The delay line in Verilog, from the vector that it takes to that which it shows."""
    round_ = counter(line.stages - 1)
    settings = (
        f".WIDTH({line.width}), .BITS({round_.bits}), .START({constant(round_.start, round_.bits)}), "
        f".FOLLOWING({constant(round_.following, 1 << round_.bits)})"
    )
    return [
        f"kera_delay #({settings}) {name} (", f"  .clk(clk), .ce({enable or constant(1, 1)}),",
        f"  .d({taken}),", f"  .q({shown})", ");",
    ]


def build_delay(
    m: Module, line: DelayLine, name: str, style: Style, enable: Value, taken: Value, shown: Signal
) -> None:
    """The same in Amaranth; with plain operators, by what its simulator knows."""
    round_ = counter(line.stages - 1)
    if style == "ecp5":
        m.submodules[name] = Instance(
            "kera_delay", p_WIDTH=line.width, p_BITS=round_.bits, p_START=Const(round_.start, round_.bits),
            p_FOLLOWING=Const(round_.following, 1 << round_.bits), i_clk=ClockSignal(), i_ce=enable,
            i_d=taken, o_q=shown,
        )
        return
    place = Signal(round_.bits, name=f"{name}_place", init=round_.start, reset_less=True)
    kept = Signal(line.width, name=f"{name}_kept", reset_less=True)
    word = Signal(line.width, name=f"{name}_word")
    data = MemoryData(shape=line.width, depth=1 << round_.bits, init=())
    m.submodules[name] = words = MemoryInstance(data=data)
    words.write_port(domain="sync", addr=place, data=taken, en=enable)
    words.read_port(domain="comb", addr=place, data=word, en=Const(1), transparent_for=())
    following = Array(Const(round_.following >> state & 1, 1) for state in range(1 << round_.bits))
    with m.If(enable):
        m.d.sync += [place.eq(Cat(following[place], place)), kept.eq(word)]
    m.d.comb += shown.eq(kept)

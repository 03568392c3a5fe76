"""The bench as SystemVerilog that Icarus and Verilator run: it drives, compares and says PASS or FAIL."""

from __future__ import annotations

from collections.abc import Iterator

from kera_hw.driver.testbench.vectors import Vectors
from kera_hw.rtl.emit.verilog import Emitted, Port

_HEAD = """\
// Self-checking bench of {name}: {items} items, with the results of Kera's reference interpreter.
// $ iverilog -g2012 -o {name}_tb {name}.v {name}_tb.sv && ./{name}_tb
// $ verilator --binary --timing -CFLAGS -fcoroutines -Wno-fatal --top-module {name}_tb {name}.v {name}_tb.sv
// $ obj_dir/V{name}_tb
module {name}_tb;
  localparam integer ITEMS = {items}, LATENCY = {latency}, INTERVAL = {interval}, RESET = {reset};
  localparam integer PHASES = {phases};  // all at once; then, where there is a protocol, with pauses
  localparam integer LIMIT = RESET + 64 * (LATENCY + INTERVAL * (ITEMS + 16));

  reg clk = 1'b0;
  always #5 clk = ~clk;
"""

_BODY = """
  integer phase = 0, sent = 0, taken = 0, cycle = 0, started = 0, quiet = 0, since = INTERVAL, errors = 0;
  integer gap = INTERVAL;
  integer resetting = 0;
  integer accepted_at [0:ITEMS-1];
  reg [31:0] noise = 32'h2545f491;
  reg rst = 1'b1, offering = 1'b0, ready = {idle}, stalled = 1'b0;
{control}
  wire accept = offering & may_accept & ~rst;
  wire take = shows_result & ready & ~rst;
{drive}
  task fail(input [8*48-1:0] what);
    begin
      errors = errors + 1;
      if (errors <= 20) $display("FAIL: cycle %0d, result %0d: %0s", cycle, taken, what);
    end
  endtask

  always @(posedge clk) begin
    cycle <= cycle + 1;
    noise <= {{noise[30:0], noise[31] ^ noise[21] ^ noise[1] ^ noise[0]}};
    if (rst) begin
      sent <= 0; taken <= 0; quiet <= 0; since <= INTERVAL - RESET; gap <= INTERVAL;
      offering <= 1'b0; ready <= {idle}; stalled <= 1'b0;
      started <= cycle;
      resetting <= resetting + 1;
      rst <= resetting < 2;
    end else begin
      since <= accept ? 1 : since + 1;
      if (accept) begin
        accepted_at[sent] = cycle;
        gap <= {gap};
        sent <= sent + 1;
      end
      offering <= sent + accept < ITEMS && ((offering && !accept) || phase == 0 || noise[1:0] != 2'd0);
      ready <= {ready};
{held}
      if (take) begin
        if (taken >= sent) fail("a result came that no item had asked for");
        else begin
{compare}
          if (phase == 0 && cycle - accepted_at[taken] != {own}) fail("the latency is not as planned");
        end
        taken <= taken + 1;
      end
      if (taken >= ITEMS) quiet <= quiet + 1;
      if (cycle - started > LIMIT) fail("results are missing when the time is up");
      if (quiet == LATENCY + 4 || cycle - started > LIMIT) begin
        rst <= 1'b1;
        resetting <= 0;
        phase <= phase + 1;
        if (phase + 1 == PHASES || errors > 0) begin
          if (errors > 0) $fatal(1, "FAIL: {name}, %0d errors", errors);
          $display("PASS: {name}, %0d items", ITEMS);
          $finish;
        end
      end
    end
  end
endmodule
"""

_CONTROL = {
    "stream": """\
  wire in_ready, out_valid;
  wire presenting = offering, may_accept = in_ready, shows_result = out_valid;""",
    "valid": """\
  wire out_valid;
  wire may_accept = since >= gap, shows_result = out_valid;
  wire presenting = offering & may_accept;  // what comes earlier is ignored""",
    "none": """\
  wire may_accept = since >= gap, presenting = offering & may_accept;
  wire shows_result = taken < sent && cycle - accepted_at[taken] == LATENCY;""",
}


def bench_text(emitted: Emitted, vectors: Vectors) -> str:
    """The file's text."""
    protocol = emitted.protocol
    values = {
        "name": emitted.name, "items": len(vectors.items), "latency": emitted.latency_cycles,
        "interval": emitted.initiation_interval, "reset": emitted.reset_cycles,
        "phases": 1 if protocol == "none" else 2,
    }
    head = _HEAD.format(**values)
    body = _BODY.format(
        name=emitted.name,
        own="LATENCY" if vectors.latencies is None else "latency_of[taken]",
        gap="INTERVAL" if vectors.latencies is None else "latency_of[sent] + 1",  # there is one unit
        control=_CONTROL[protocol],
        # Without ready nothing stalls: results are taken as they come.
        idle="1'b0" if protocol == "stream" else "1'b1",
        ready="phase == 0 || noise[9:8] != 2'd0" if protocol == "stream" else "1'b1",
        drive="\n".join(_drive(emitted)),
        held="\n".join(_held(emitted)),
        compare="\n".join(_compare(emitted.data_outputs)),
    )
    return head + "\n".join(_memories(emitted, vectors)) + body


def _range(port: Port) -> str:
    return f"[{port.width - 1}:0]"


def _memories(emitted: Emitted, vectors: Vectors) -> Iterator[str]:
    ports = [(port, "item", vectors.items) for port in emitted.data_inputs]
    ports += [(port, "wanted", vectors.expected) for port in emitted.data_outputs]
    for port, what, _ in ports:
        yield f"  reg {_range(port)} {what}_{port.name} [0:ITEMS-1];"
    if vectors.latencies is not None:
        yield "  integer latency_of [0:ITEMS-1];  // and the next item may come when the result is taken"
    yield "  initial begin"
    for k, latency in enumerate(vectors.latencies or ()):
        yield f"    latency_of[{k}] = {latency};"
    for k in range(len(vectors.items)):
        values = (f"{what}_{p.name}[{k}] = {p.width}'h{rows[k][p.name]:x};" for p, what, rows in ports)
        yield "    " + " ".join(values)
    yield "  end"


def _drive(emitted: Emitted) -> Iterator[str]:
    """The buses and the instance; between items the buses hold noise, so that nothing may rely on them."""
    connections = [".clk(clk)"]
    signals = {"rst": "rst", "in_valid": "offering", "in_ready": "in_ready", "out_valid": "out_valid",
               "out_ready": "ready"}  # fmt: skip
    connections += [f".{port.name}({signals[port.name]})" for port in emitted.control]
    for port in emitted.data_inputs:
        idle = f"{{{port.width}{{noise[5]}}}}"
        yield f"  wire {_range(port)} {port.name} = presenting ? item_{port.name}[sent] : {idle};"
    for port in emitted.data_outputs:
        yield f"  wire {_range(port)} {port.name};"
        if emitted.protocol == "stream":
            yield f"  reg {_range(port)} held_{port.name};"
    connections += [f".{port.name}({port.name})" for port in (*emitted.data_inputs, *emitted.data_outputs)]
    yield f"  {emitted.name} dut({', '.join(connections)});"


def _held(emitted: Emitted) -> Iterator[str]:
    """A result offered and not taken stays."""
    if emitted.protocol != "stream":
        return
    changed = "".join(f" || {port.name} !== held_{port.name}" for port in emitted.data_outputs)
    yield f'      if (stalled && (out_valid !== 1\'b1{changed})) fail("the result was not held");'
    yield "      stalled <= out_valid & ~ready;"
    for port in emitted.data_outputs:
        yield f"      held_{port.name} <= {port.name};"


def _compare(ports: tuple[Port, ...]) -> Iterator[str]:
    for port in ports:
        wanted = f"wanted_{port.name}[taken]"
        yield f"          if ({port.name} !== {wanted}) begin"
        yield f'            fail("{port.name} is wrong");'
        yield f'            if (errors <= 20) $display("  %h, expected %h", {port.name}, {wanted});'
        yield "          end"

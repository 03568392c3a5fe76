"""K06xx: no schedule, does not fit, not expressible in hardware."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0601", "operation longer than a clock period",
     "One operation of the circuit alone takes longer than a clock period on this device. The message names "
     "the operation and the fastest clock at which it fits; ask for that clock or narrow the operation."),
    ("K0602", "latency too short",
     "The operations on the longest path need more pipeline stages than the latency asked for. Allow the "
     "latency that the message names, or a slower clock."),
    ("K0603", "initiation interval too short",
     "A value of the stream's state takes several stages from one item to the next, so a new item cannot "
     "start that often. The message names the loop of operations and the smallest interval that works; "
     "shorten the computation between two values of the state, or ask for a slower clock. Of a design whose "
     "loops stay loops it names the fewest cycles that an item takes: ask for that interval, or leave out "
     "`--ii`."),
    ("K0604", "does not fit the device",
     "The circuit needs more of a resource than the device has. Choose a larger part, or make the "
     "computation smaller. A plan that exceeds its device is shown with a warning; a large design of which "
     "no circuit can fit is refused before it is mapped, with the loop that makes it so large and the "
     "smallest interval at which its operations would do with the device's units, if these were shared."),
    ("K0605", "unknown device",
     "No device of that name is known. `kera doctor` lists the devices."),
    ("K0606", "clock not met",
     "Place and route ended below the clock asked for, after the plan was made again with the wire "
     "delays that "
     "it found. Allow more latency, try another `--seed`, or ask for a slower clock."),
    ("K0610", "too large to unroll",
     "The function unrolls to more operations, or has more values at its ports, than one pipeline can hold. "
     "Loops that stay loops do not make it fit either: those that a process is made of stand in no branch, "
     "and its interface has a handshake. The message names the loops that most operations come from. Export "
     "a smaller piece, such as a loop's body, and stream over it."),
    ("K0611", "state too large for registers",
     "A stream's state of this size is kept in RAM, where a word is read or written at a time: by an index, "
     "under conditions or in loops, in the latest version. The message says what else is done with it. "
     "Read and write single elements, or make the state smaller."),
    ("K0612", "parameter name taken by the handshake",
     "The ports in_valid and in_ready carry the handshake; a tensor `a` of more than 1,024 bits has "
     "in_a_valid, in_a_ready, in_a_data and in_a_last, which a parameter `a_valid` would have, too. Rename "
     "the parameter."),
    ("K0613", "effect in hardware",
     "Effects such as printing have no hardware yet. Keep them out of the exported function."),
    ("K0614", "function name taken by a circuit element",
     "The top module has the function's name, and this one belongs to a cell of a device family or to a "
     "module of the compiler's own, or is no identifier of Verilog. Rename the function."),
    ("K0615", "too many port bits",
     "Amaranth, which makes the control of every circuit and with `--emitter amaranth` all of it, takes so "
     "many bits of parameters or results and no more. Pass less at a time, or where nothing needs control "
     "(`--interface none`, no state, no folded loop) use the text emitter."),
    ("K0616", "top module renamed",
     "The top module has the function's name with an underscore behind it, since the name itself is a word "
     "of Verilog, SystemVerilog or C++, or one that tools keep for themselves, such as `std`, `TOP` and "
     "`main`. Nothing needs to be done; rename the function for a module of another name."),
    ("K0617", "valid bits without a handshake",
     "With `--interface none` a function that takes an item in every cycle and keeps nothing has its data "
     "and a clock alone. Where state outlives an item, or an item takes the circuit for several cycles, the "
     "circuit has to know which cycles hold one: it has in_valid, out_valid and a synchronous rst besides. "
     "out_valid follows in_valid after the latency, and nothing stalls. in_valid may be high at most every "
     "so many cycles as the plan's interval says; an item that comes earlier is ignored, it changes no state "
     "and has no result."),
    ("K0618", "general circuit",
     "A function that has no circuit of its own on this type is computed as the interpreter does it, by "
     "additions, products and tables of f64, each a whole floating-point unit. The result is right in every "
     "bit; the circuit is many times as large as one made for the purpose. Where a narrower type will do, "
     "convert the argument: `exp`, `exp2`, `log`, `log2`, `tanh`, `sigmoid`, `erf` and `silu` on f32, and "
     "every function on f16 and bf16, have circuits of their own."),
)

"""K07xx: a target that cannot keep an operation's meaning."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0701", "operation that a target refuses",
     "A target computes no operation it could get wrong: this one has no exact form on its type there. The "
     "message says why and what to do; `kera explain TARGET` lists all that a target refuses."),
    ("K0702", "nested too deeply",
     "Functions, loops and branches nest deeper in each other than targets follow. Split the program or "
     "flatten the nesting."),
    ("K0703", "floating-point unit in a foreign mode",
     "Floats are computed by the host's IEEE 754 units, and something in this process has set them to flush "
     "subnormals or to round otherwise than to nearest even. Run without the library that did."),
    ("K0704", "operation that a target was not told about",
     "The registry has an operation that this target's table neither lowers nor refuses: a gap in kera, not "
     "in the program. Run the function on another target, and report it."),
    ("K0705", "larger than a target takes",
     "Engines of WebAssembly limit the code, the local values and the memory of a module; machine code "
     "limits the stack that it needs for values in no register; GPUs limit the parameters of a kernel. Split "
     "the function, or keep its loops: what is written out takes room for every round."),
    ("K0706", "processor without what the code uses",
     "Machine code runs under Linux on x86-64, at the level of SSE2, of AVX2 with BMI and FMA or of AVX-512, "
     "on ARM64, and on RISC-V with vectors. `cpu` is the best that the processor has; a level by its name "
     "needs a processor that has it. `kera build` writes code for any of them; run the function as `wasm`, "
     "which gives the same bits on any machine, or with `interp`."),
    ("K0707", "kernel text that the interpreter does not know",
     "The interpreters of PTX and of AMDGCN read the part of the language that kera writes, and refuse every "
     "other instruction, modifier, type and directive. The message names the line; other text runs on a "
     "GPU."),
    ("K0708", "kernel at fault",
     "While a kernel ran, a thread left its memory, read what nobody wrote, raced with another, did not come "
     "to its block's barrier, or did not end. Kernels that kera writes do none of this: report it."),
    ("K0709", "no GPU that can be used",
     "NVIDIA's driver refuses the kernels or a call: the message has its answer. Where there is no GPU at "
     "all, `--target ptx` runs in an interpreter of its own, with the same bits."),
)

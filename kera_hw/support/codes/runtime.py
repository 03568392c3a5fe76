"""K09xx: faults while running: inputs, files, tools."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0901", "file cannot be read",
     "The path does not name a readable file of a sensible size."),
    ("K0902", "no such function",
     "The program has no export of that name; only `pub` items are exported."),
    ("K0903", "no such target",
     "The target is not one that this version knows; `kera doctor` lists them."),
    ("K0920", "test failed",
     "An assertion of an in-file test does not hold. The message shows both values and the first element at "
     "which they differ; equality is bit for bit."),
    ("K0921", "assertion failed",
     "An `assert` in a function or stream does not hold for an item. The message names the item and its "
     "inputs; results are as without the assertion."),
    ("K0922", "point never reached",
     "No item met the condition of a `cover`. Run more items, or such that reach it; if none can, the "
     "condition is impossible and `kera verify --formal` says so."),
    ("K0923", "observations differ",
     "Targets give the same results, but their assertions, cover points or prints do not agree. This is a "
     "bug in the compiler; please report it with the program."),
    ("K0924", "simulators differ",
     "Two simulators do not agree on the same Verilog, cycle by cycle, so what it says may be understood in "
     "more than one way. This is a bug in the compiler; please report it with the program."),
    ("K0925", "function to compare with cannot be used",
     "`kera bench --against` takes a Python function by module and name, `numpy:exp`, or by file and name, "
     "`reference.py:layer`, and calls it with the parameters' arrays in order."),
    ("K0904", "input does not fit",
     "A value's name, shape, dtype or range is not what the parameter takes."),
    ("K0905", "unusable argument",
     "A value given to the command does not name a parameter or cannot be read as one."),
    ("K0906", "file cannot be written",
     "The path given for a result cannot be created or replaced: a directory in its place, no permission, or "
     "no room."),
    ("K0907", "not enough memory",
     "The values of this run do not fit the memory of the machine. Run fewer items at a time, or a program "
     "with smaller tensors."),
    ("K0911", "input missing, unknown or of another structure",
     "Inputs are given by parameter name: structs as dicts with exactly their fields, tuples as tuples."),
    ("K0912", "input of another shape",
     "An array does not have the parameter's shape, preceded in a batch by the number of items."),
    ("K0913", "input of another kind of number",
     "Integers and fixed point take integer arrays, bool takes bool arrays, a float takes its own dtype; "
     "nothing is converted silently."),
    ("K0914", "input out of range",
     "A value does not fit the parameter's type; fixed point is given as its raw integer."),
    ("K0915", "number of items unclear",
     "Every input of a batch has the items along its leading axis, as many in each."),
    ("K0916", "stream closed",
     "A stream that was closed cannot be stepped or reset; take another one with `program.stream(..)`."),
    ("K0917", "array that takes no results",
     "Results are written into an array as they are: one of their dtype and shape, with rows one after "
     "another, that may be written to; `np.empty(shape, dtype)` makes one. Several results, or a scalar, "
     "have no such array."),
    ("K0918", "Python code that cannot be traced",
     "A traced function runs once, before there are values: what it does with them becomes the program. "
     "Conditions and loops of Python are decided then; a choice that depends on a value is `select`, and a "
     "function of Python or NumPy that Kera lacks has no meaning. The message says what to write instead."),
    ("K0919", "parameter of a traced function without a type",
     "Every parameter of a traced function has a type of Kera: by its annotation, or given to `trace`."),
    ("K0908", "option out of range",
     "An option of the command line or of the Python interface has a value outside its range, or of another "
     "kind than it takes. The message says what it takes."),
    ("K0910", "simulation departs from the plan",
     "The simulated circuit broke its handshake or its predicted cycles. This is a bug in the compiler; "
     "please report it with the program."),
    ("K0960", "proof not finished",
     "The solver did not decide within the time limit whether circuit and graph are equal. Nothing is known "
     "to be wrong. Allow more time, or prove smaller pieces."),
    ("K0961", "no formal meaning",
     "The function uses an operation, or its netlist a cell, that the solver's theories of bit-vectors and "
     "IEEE numbers have no words for. Compare on many items instead."),
    ("K0962", "planted fault not refuted",
     "Beside every proof a fault is planted in the circuit, which the solver must find. It did not, so its "
     "finding no difference says nothing and does not count as a proof."),
    ("K0950", "tool missing",
     "An external tool that the request needs is not installed. `kera doctor` says which tools are "
     "missing and how to get each of them."),
    ("K0951", "tool failed",
     "An external tool refused its input or broke off. Its own last lines are quoted; `kera build` keeps "
     "all that tools print in the directory `logs` of the build."),
    ("K0952", "tool timed out",
     "An external tool did not end within the time it was given and was stopped."),
)

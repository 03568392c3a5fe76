"""K08xx: malformed or inconsistent artefacts."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0801", "not a .keg file",
     "The file does not begin as every .keg does; check that it is the right file."),
    ("K0802", "unknown .keg version", "The file was written by another version; rebuild it with this one."),
    ("K0803", "malformed section table", "The file is truncated or damaged; fetch or build it again."),
    ("K0804", "section hash mismatch", "The bytes changed after writing; fetch or build the file again."),
    ("K0805", "malformed section", "A section cannot be decoded; fetch or build the file again."),
    ("K0806", "non-canonical file",
     "Equal graphs have equal bytes; this file orders or repeats entries otherwise."),
    ("K0807", "unsound graph",
     "The graph breaks a rule that every graph keeps; it was not made by this compiler."),
    ("K0808", "unusable receipt",
     "The file is no receipt of this version's format, or was changed after it was written. Build again."),
    ("K0809", "file differs from its receipt",
     "A file of the build is missing or has other bytes than the build wrote. Build again."),
    ("K0810", "receipt of another graph",
     "The graph beside the receipt is not the one that the receipt names. Build again."),
    ("K0811", "not reproduced",
     "The graph, planned again with the options in the receipt, does not give the plan or the Verilog that "
     "stand there. Other versions of the compiler or its libraries may plan otherwise; the check shows which "
     "differ."),
    ("K0820", "not a loop program",
     "The text is none that a loop program prints as; the line says where."),
    ("K0821", "unusable plan",
     "A plan is TOML with a `[[step]]` table a transform, each of which applies to what those before it have "
     "made. The message says what is wrong with it, or which statement is in the way of a step."),
    ("K0822", "unusable plan of a circuit",
     "A plan of a circuit is for one graph, device and set of options, and names the circuit that comes out. "
     "The message says which of these is another one here. Plan again, or give the options of the plan."),
)

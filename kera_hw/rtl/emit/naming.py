"""Names in the emitted Verilog: readable stems from source, legal, unique, never a keyword."""
from __future__ import annotations

import re

from kera_hw.schedule.netlist import Add, Cell, Fold, Input, Lut, Mul, Mux, Netlist, Rom, StateOut

# IEEE 1364-2005, Annex B, and the words of SystemVerilog that tools reserve when reading it.
_WORDS = """
    always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign
    default defparam design disable edge else end endcase endconfig endfunction endgenerate endmodule
    endprimitive endspecify endtable endtask event for force forever fork function generate genvar
    highz0 highz1 if ifnone incdir include initial inout input instance integer join large liblist
    library localparam macromodule medium module nand negedge nmos nor noshowcancelled not notif0 notif1
    or output parameter pmos posedge primitive pull0 pull1 pulldown pullup pulsestyle_ondetect
    pulsestyle_onevent rcmos real realtime reg release repeat rnmos rpmos rtran rtranif0 rtranif1
    scalared showcancelled signed small specify specparam strong0 strong1 supply0 supply1 table task
    time tran tranif0 tranif1 tri tri0 tri1 triand trior trireg unsigned use uwire vectored wait wand
    weak0 weak1 while wire wor xnor xor accept_on alias always_comb always_ff always_latch assert assume
    before bind bins binsof bit break byte chandle checker class clocking const constraint context
    continue cover covergroup coverpoint cross dist do endchecker endclass endclocking endgroup
    endinterface endpackage endprogram endproperty endsequence enum eventually expect export extends
    extern final first_match foreach forkjoin global iff ignore_bins illegal_bins implements implies
    import inside int interface intersect interconnect join_any join_none let local logic longint
    matches modport nettype new nexttime null package packed priority program property protected pure
    rand randc randcase randsequence ref reject_on restrict return s_always s_eventually s_nexttime
    s_until s_until_with sequence shortint shortreal soft solve static string strong struct super
    sync_accept_on sync_reject_on tagged this throughout timeprecision timeunit type typedef union
    unique unique0 until until_with untyped var virtual void wait_order weak wildcard with within
"""
KEYWORDS = frozenset(_WORDS.split())

_STEMS: tuple[tuple[type[Cell], str], ...] = (
    (Input, "in"), (Lut, "logic"), (Add, "sum"), (Mul, "product"), (Mux, "mux"), (Rom, "table"),
    (Fold, "loop"), (StateOut, "state"),
)


def escaped(name: str) -> str:
    """A Verilog identifier for ``name``: as it is, or escaped (with its closing blank) when it must be."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]*", name) and name not in KEYWORDS:
        return name
    return f"\\{name} "


def stem_of(cell: Cell, netlist: Netlist) -> str:
    """A readable beginning for the names of one cell's signals."""
    name = cell.name or (cell.origin.name if cell.origin else None)
    if isinstance(cell, StateOut):
        name = netlist.states[cell.state].name
    elif isinstance(cell, Input) and not name:
        name = cell.bus.removeprefix("in_")
    if name:
        cleaned = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
        if cleaned:
            return cleaned if not cleaned[0].isdigit() else "n" + cleaned
    return next((stem for kind, stem in _STEMS if isinstance(cell, kind)), "value")


def unique_stems(netlist: Netlist, reserved: frozenset[str]) -> list[str]:
    """One stem per cell: a second ``sum`` becomes ``sum_2``.

    Signals are named ``<stem>_s<stage>`` and the like, so stems must differ also as beginnings: ``x`` with
    ``x_2`` is fine since no stage suffix is a bare number.
    """
    taken, counts, stems = set(reserved), dict[str, int](), list[str]()
    for cell in netlist.cells:
        stem = stem_of(cell, netlist)
        name = stem
        while name in taken:
            counts[stem] = counts.get(stem, 1) + 1
            name = f"{stem}_{counts[stem]}"
        taken.add(name)
        stems.append(name)
    return stems

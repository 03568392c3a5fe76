"""Writing a scheduled netlist down as Verilog: the plan has decided everything, nothing is decided here."""

"""Typed wrappers around the external tools: Yosys, nextpnr, Verilator, packers."""

"""Plans written down as hardware: Amaranth, Verilog, simulation, synthesis."""

"""Running emitted Verilog against the reference: a generated Verilator bench that checks every cycle."""

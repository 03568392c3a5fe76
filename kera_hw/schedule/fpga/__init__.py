"""Models of an FPGA: its cells, what they cost in area and time, and how they behave."""

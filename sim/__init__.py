"""cocotb benches: they drive a design's pins as a neighbour would and know only the reference's values."""

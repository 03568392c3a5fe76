"""Names, types, index proofs and lowering to the graph."""

"""The index proof: abstract execution with symbols, intervals, residues and differences."""

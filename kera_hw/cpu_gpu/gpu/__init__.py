"""What kernels for GPUs have in common: the walk over statements, the cut into kernels, launches, lanes."""

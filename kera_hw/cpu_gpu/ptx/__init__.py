"""PTX: native loop programs as kernels for NVIDIA GPUs, and an interpreter of our own for that text."""

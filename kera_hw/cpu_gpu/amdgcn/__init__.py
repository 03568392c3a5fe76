"""AMDGCN: native loop programs as kernels for AMD's GPUs (CDNA), and an interpreter of that text."""

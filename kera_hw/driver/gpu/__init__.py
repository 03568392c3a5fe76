"""Kernels for GPUs to run and to take away: the targets, what builds for them write, and their plans."""

"""RISC-V of 64 bits with vectors (RV64GCV)."""

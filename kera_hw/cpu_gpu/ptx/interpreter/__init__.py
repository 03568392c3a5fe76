"""PTX text run without a GPU: the emitted part of the language, as the manual has it, and nothing else."""

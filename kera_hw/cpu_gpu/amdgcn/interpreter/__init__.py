"""AMDGCN text run without a GPU: the emitted part of the language, as the manuals have it, no more."""

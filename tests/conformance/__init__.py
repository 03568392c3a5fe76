"""Held against foreign oracles: every float operation on every format, edge values first.

Each module holds checks that ``python -m tests.conformance.<module>`` runs at length and a test in short. A
long run writes ``results/<module>.json``:

    {"command": ..., "seconds": ..., "rows": [
        {"op": ..., "dtype": ..., "executor": ..., "oracle": ..., "vectors": ..., "differences": ...,
         "exhaustive": ..., "note": ...}]}

- ``op``: the registry's name. ``dtype``: a format, or ``f64 -> i17`` for a conversion.
- ``executor``: ``interp``, ``rtl`` (simulated Verilog), ``model`` (lowered graph), ``netlist`` or ``formal``.
- ``oracle``: who said what is right. ``vectors``, ``differences``: how many were tried, how many were wrong.
- ``exhaustive``: whether every input was tried. ``note``: optional. ``graph``: what it was (``identity``).

``python -m tests.conformance.current`` lists the rows of which that has changed since.

``tools/gen_conformance.py`` makes docs/reference/conformance.md of all the files there, so any executor may
add its own; rows for the same op, dtype and executor stand beside each other.
"""

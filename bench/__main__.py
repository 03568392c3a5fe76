"""`python -m bench`: all benchmarks, or one by its name (the keys of BENCHES)."""
from __future__ import annotations

import os
import sys
from importlib import import_module

from kera_hw.driver.remembered import SWITCH

BENCHES = {
    "qor": "bench.qor", "fpu": "bench.fpu", "estimate": "bench.estimate_error", "compile": "bench.compile",
    "route": "bench.route", "stream": "bench.stream", "control": "bench.control",
    "mutation": "bench.mutation", "cpu": "bench.cpu", "wasm": "bench.wasm", "gpu": "bench.gpu",
}
_NAMED_ONLY = ("gpu",)
"""For machines that few have."""


def main() -> int:
    """Runs the named bench with the remaining arguments, or every bench in order."""
    os.environ[SWITCH] = "off"  # what is measured is the whole of compiling
    names = sys.argv[1:2] or [name for name in BENCHES if name not in _NAMED_ONLY]
    if names[0] not in BENCHES:
        print(f"usage: python -m bench [{'|'.join(BENCHES)}] [options]", file=sys.stderr)
        return 2
    return max(import_module(BENCHES[name]).main(sys.argv[2:]) for name in names)


if __name__ == "__main__":
    sys.exit(main())

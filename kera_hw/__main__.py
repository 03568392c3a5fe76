"""`python -m kera_hw` is the `kera` command."""
from __future__ import annotations

import sys

from kera_hw.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""Every input of the one-argument functions against MPFR; ``python -m tests.exhaustive.run NAME...``."""

# The part of Amaranth 0.5 that Kera HW uses; the package carries no types of its own.

"""What interpreters of GPUs' languages have in common: memory that sees races, threads in step."""

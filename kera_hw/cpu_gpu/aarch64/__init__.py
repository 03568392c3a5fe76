"""ARM64 with NEON."""

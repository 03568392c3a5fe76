"""From source text to a verified graph."""

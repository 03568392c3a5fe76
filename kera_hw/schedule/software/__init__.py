"""Plans for software: which loops run as vectors, and where buffers lie."""

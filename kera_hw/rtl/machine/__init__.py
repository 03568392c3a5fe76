"""Loops kept as loops: a round of a loop as a flat design, and a controller that starts rounds."""

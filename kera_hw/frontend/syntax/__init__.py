"""Token and node kinds, the lossless tree, typed views over it."""

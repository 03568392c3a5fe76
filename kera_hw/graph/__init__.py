"""Content-addressed graphs: nodes, regions, exports and their file format."""

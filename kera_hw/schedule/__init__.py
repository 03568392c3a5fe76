"""Plans: which cycle and which resource every node gets, and the models behind that choice."""

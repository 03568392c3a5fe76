"""A page that loads a module and its graph, names the graph anew, and compares results bit for bit."""

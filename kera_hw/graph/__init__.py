"""Content-addressed graphs: nodes, regions, builder, printer, .keg files, verifier, analyses."""

"""Names: what a file declares, scopes, built-ins, and the modules that imports name."""

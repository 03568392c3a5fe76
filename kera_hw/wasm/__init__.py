"""WebAssembly: loop programs in native operations as modules, with 128-bit vectors."""

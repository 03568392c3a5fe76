"""Loop programs: one export as imperative code over buffers, the level every target starts from."""

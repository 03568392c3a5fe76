"""The reference evaluator: nothing but each op's own evaluate, applied in order."""

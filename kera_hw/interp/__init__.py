"""The reference evaluator: a graph's meaning through ``OPS[...].evaluate`` alone."""
from kera_hw.interp.evaluator import run_operation, run_region
from kera_hw.interp.exports import run_export
from kera_hw.interp.stepping import Stepping
from kera_hw.interp.values import flatten_value, unflatten_value

__all__ = ["Stepping", "flatten_value", "run_export", "run_operation", "run_region", "unflatten_value"]

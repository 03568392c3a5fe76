"""Hardware lowering: a loop program becomes one flat region of scalar integer and boolean operations."""
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf, FlatMemory, FlatState
from kera_hw.rtl.lower.flatten import flatten_export

__all__ = ["FlatDesign", "FlatLeaf", "FlatMemory", "FlatState", "flatten_export"]

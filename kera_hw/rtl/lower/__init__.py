"""Hardware lowering: an export becomes one flat region of scalar integer and boolean operations."""
from kera_hw.rtl.lower.blocks import Carried, Given, flatten_block
from kera_hw.rtl.lower.design import FlatDesign, FlatLeaf, FlatMemory, FlatState
from kera_hw.rtl.lower.flatten import flatten_export

__all__ = [
    "Carried", "FlatDesign", "FlatLeaf", "FlatMemory", "FlatState", "Given", "flatten_block",
    "flatten_export",
]

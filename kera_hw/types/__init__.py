"""The types of Kera values; a type knows its canonical hash, its width and its leaves."""
from kera_hw.types.dtypes import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I32,
    U32,
    UNIT,
    WORD_BITS,
    BoolType,
    FixType,
    FloatType,
    IntType,
    Scalar,
    StructType,
    TensorType,
    TokenType,
    TupleType,
    Type,
    element_type,
    is_scalar,
    shape_of,
    with_element,
)
from kera_hw.types.layout import Leaf, bit_width, flatten_type, leaf_types
from kera_hw.types.storage import FORMATS, is_wide, item_bytes, numpy_dtype

__all__ = [
    "BF16", "BOOL", "F16", "F32", "F64", "FORMATS", "I32", "U32", "UNIT", "WORD_BITS",
    "BoolType", "FixType", "FloatType", "IntType", "Leaf", "Scalar", "StructType", "TensorType",
    "TokenType", "TupleType", "Type", "bit_width", "element_type", "flatten_type", "is_scalar",
    "is_wide", "item_bytes", "leaf_types", "numpy_dtype", "shape_of", "with_element",
]

"""The register map as a class in Python that runs the design."""

from __future__ import annotations

from collections.abc import Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined

from kera_hw.rtl.emit.naming import free_name
from kera_hw.rtl.emit.register_map import (
    AUTO_RESTART_BIT,
    CONTROL,
    DONE_BIT,
    GLOBAL_INTERRUPT,
    IDLE_BIT,
    INTERRUPT_ENABLE,
    INTERRUPT_STATUS,
    READY_BIT,
    START_BIT,
    Entry,
    RegisterMap,
)
from kera_hw.types import (
    BF16,
    BoolType,
    FixType,
    FloatType,
    IntType,
    StructType,
    TensorType,
    TupleType,
    Type,
    bit_width,
)

_FORMATS = {16: "<e", 32: "<f", 64: "<d"}


def driver_text(top: str, fingerprint: str, space: RegisterMap, types: Mapping[str, Type]) -> str:
    """The module's text; ``types`` are those of the values by bus."""
    loader = PackageLoader("kera_hw.driver", "registers")
    environment = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True)
    given = [entry for entry in _in_order(space) if entry.is_parameter]
    control = (CONTROL, GLOBAL_INTERRUPT, INTERRUPT_ENABLE, INTERRUPT_STATUS)
    bits = (START_BIT, DONE_BIT, IDLE_BIT, READY_BIT, AUTO_RESTART_BIT)
    return environment.get_template("driver.py.j2").render(
        top=top, name=free_name("".join(word.capitalize() for word in top.split("_")), set()),
        fingerprint=fingerprint, example=", ".join(f"{entry.name}=..." for entry in given),
        control=", ".join(hex(offset) for offset in control), bits=", ".join(hex(1 << bit) for bit in bits),
        parameters=[_line(entry, types) for entry in given],
        results=[_line(entry, types) for entry in _in_order(space) if not entry.is_parameter],
    )  # fmt: skip


def _in_order(space: RegisterMap) -> list[Entry]:
    return sorted(space.entries, key=lambda entry: entry.value.position)


def _line(entry: Entry, types: Mapping[str, Type]) -> str:
    kind = types[entry.value.bus]
    if isinstance(kind, TensorType):
        row = (entry.offset, entry.container, kind.size, _described(kind.element))
    else:
        row = (entry.offset, entry.size_bytes, 0, _described(kind))
    return f"{entry.name!r}: {row!r}"


def _described(kind: Type) -> tuple[object, ...]:
    """A type as plain data."""
    if isinstance(kind, StructType):
        return "struct", tuple((name, _described(item)) for name, item in kind.fields)
    if isinstance(kind, TupleType):
        return "tuple", tuple(map(_described, kind.items))
    if isinstance(kind, TensorType):
        return "tensor", kind.size, _described(kind.element)
    width = bit_width(kind)
    if isinstance(kind, FloatType):
        return ("bf16", width) if kind == BF16 else ("float", width, _FORMATS[width])
    assert isinstance(kind, (IntType, FixType, BoolType))
    if isinstance(kind, BoolType):
        return "bool", width
    return "signed" if kind.signed else "unsigned", width

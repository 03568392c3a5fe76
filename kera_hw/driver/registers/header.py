"""The register map as a C header: offsets, and functions that set parameters and get results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    WORD_BYTES,
    Entry,
    RegisterMap,
)
from kera_hw.types import BoolType, FixType, FloatType, IntType, TensorType, Type

_HEAD = """\
/* {top}: its registers behind AXI4-Lite, and functions for software.
 * Graph {fingerprint}
 * `base` is where the design is in the address space. Set the parameters, start, wait until it is done, get
 * the results.
 * Reading the control register clears done and ready. */
#ifndef {guard}
#define {guard}

#include <stdint.h>
#include <string.h>

"""

_FUNCTIONS = """\

static inline uint32_t {top}_read(const volatile void *base, uint32_t offset)
{{
    return *(const volatile uint32_t *)((const volatile uint8_t *)base + offset);
}}

static inline void {top}_write(volatile void *base, uint32_t offset, uint32_t word)
{{
    *(volatile uint32_t *)((volatile uint8_t *)base + offset) = word;
}}

/* Bytes to the words from an offset on; what is left of the last word becomes zeros. */
static inline void {top}_put(volatile void *base, uint32_t offset, const void *from, uint32_t bytes)
{{
    const uint8_t *place = (const uint8_t *)from;
    while (bytes > 0) {{
        uint32_t word = 0, size = bytes < 4 ? bytes : 4;
        memcpy(&word, place, size);
        {top}_write(base, offset, word);
        place += size;
        offset += 4;
        bytes -= size;
    }}
}}

static inline void {top}_get(const volatile void *base, uint32_t offset, void *to, uint32_t bytes)
{{
    uint8_t *place = (uint8_t *)to;
    while (bytes > 0) {{
        uint32_t word = {top}_read(base, offset), size = bytes < 4 ? bytes : 4;
        memcpy(place, &word, size);
        place += size;
        offset += 4;
        bytes -= size;
    }}
}}

static inline void {top}_start(volatile void *base) {{ {top}_write(base, {prefix}_CONTROL, {prefix}_START); }}

static inline int {top}_is_idle(const volatile void *base)
{{
    return ({top}_read(base, {prefix}_CONTROL) & {prefix}_IDLE) != 0;
}}

/* Told once: reading clears it. */
static inline int {top}_is_done(const volatile void *base)
{{
    return ({top}_read(base, {prefix}_CONTROL) & {prefix}_DONE) != 0;
}}

static inline void {top}_interrupt_when_done(volatile void *base, int enabled)
{{
    {top}_write(base, {prefix}_INTERRUPT_ENABLE, enabled ? 1u : 0u);
    {top}_write(base, {prefix}_GLOBAL_INTERRUPT, enabled ? 1u : 0u);
}}

/* What is pending, which this clears. */
static inline uint32_t {top}_acknowledge(volatile void *base)
{{
    uint32_t pending = {top}_read(base, {prefix}_INTERRUPT_STATUS);
    {top}_write(base, {prefix}_INTERRUPT_STATUS, pending);
    return pending;
}}
"""


def header_text(top: str, fingerprint: str, space: RegisterMap, types: Mapping[str, Type]) -> str:
    """The header; ``types`` are those of the values by bus."""
    prefix = top.upper()
    control = {
        "CONTROL": CONTROL, "GLOBAL_INTERRUPT": GLOBAL_INTERRUPT, "INTERRUPT_ENABLE": INTERRUPT_ENABLE,
        "INTERRUPT_STATUS": INTERRUPT_STATUS,
    }  # fmt: skip
    bits = {"START": START_BIT, "DONE": DONE_BIT, "IDLE": IDLE_BIT, "READY": READY_BIT,
            "AUTO_RESTART": AUTO_RESTART_BIT}  # fmt: skip
    lines = [f"#define {prefix}_{name} 0x{offset:x}u" for name, offset in control.items()]
    lines += [f"#define {prefix}_{name} 0x{1 << bit:x}u" for name, bit in bits.items()]
    taken = {*control, *bits}
    names = {entry: free_name(entry.name.upper(), taken) for entry in space.entries}
    functions: list[str] = []
    own = {"read", "write", "put", "get", "start", "is_idle", "is_done", "interrupt_when_done", "acknowledge"}
    for entry in space.entries:
        kind = types[entry.value.bus]
        macro = f"{prefix}_{names[entry]}"
        lines.append(f"#define {macro}_OFFSET 0x{entry.offset:x}u /* {kind} */")
        functions += _accessors(top, macro, entry, kind, own)
    head = _HEAD.format(top=top, fingerprint=fingerprint, guard=f"{prefix}_H")
    body = _FUNCTIONS.format(top=top, prefix=prefix)
    return "\n".join([head + "\n".join(lines), body, *functions, f"#endif /* {prefix}_H */", ""])


def _accessors(top: str, macro: str, entry: Entry, kind: Type, taken: set[str]) -> Iterator[str]:
    """The function that sets a parameter, or that gets a result."""
    verb = "set" if entry.is_parameter else "get"
    name = f"{top}_{free_name(f'{verb}_{entry.name}', taken)}"
    base = f"{'' if entry.is_parameter else 'const '}volatile void *base"
    element = kind.element if isinstance(kind, TensorType) else kind
    scalar = _scalar(element, entry.container)
    count = entry.value.elements if isinstance(kind, TensorType) else 1
    if scalar is None:  # a struct, or what C has no type for: its words
        scalar, count = "uint32_t", entry.size_bytes // WORD_BYTES
    array = isinstance(kind, TensorType) or count > 1
    size = f"sizeof({scalar}) * {count}u" if array else f"sizeof({scalar})"
    call = f"{top}_{'put' if entry.is_parameter else 'get'}(base, {macro}_OFFSET"
    if array:
        const = "const " if entry.is_parameter else ""
        yield f"static inline void {name}({base}, {const}{scalar} values[{count}])"
        yield f"{{\n    {call}, values, {size});\n}}\n"
    elif entry.is_parameter:
        yield f"static inline void {name}({base}, {scalar} value)"
        yield f"{{\n    {call}, &value, {size});\n}}\n"
    else:
        yield f"static inline {scalar} {name}({base})"
        yield f"{{\n    {scalar} value;\n    {call}, &value, {size});\n    return value;\n}}\n"


def _scalar(kind: Type, container: int) -> str | None:
    """The type of C that an element is, where there is one of its size."""
    if isinstance(kind, FloatType):
        return {"f32": "float", "f64": "double"}.get(str(kind), "uint16_t")
    if not isinstance(kind, (IntType, FixType, BoolType)) or container > 8:
        return None
    signed = not isinstance(kind, BoolType) and kind.signed
    return f"{'' if signed else 'u'}int{8 * container}_t"

"""The graph verifier.

Checks: every operation is in the registry and has exactly its attributes in canonical order; output types
equal what the typing rule gives; references name existing outputs; parameters agree in index and type with
their region; constants have the size their type asks for and are in canonical form; regions in attributes
are themselves sound; no integer of a program is wider than a word; an export's region takes the leaves of
its parameters and state and gives the leaves of its result and next state, then its observations; initial
state is constant.
Does not check: what the program means, index ranges, ownership, or effects' order (their own checkers do).
"""
from __future__ import annotations

import numpy as np

from kera_hw.graph.node import Export, Graph, Node, Region, regions_in_order, regions_of
from kera_hw.graph.probes import observes
from kera_hw.ops.registry import OPS
from kera_hw.ops.spec import Array, TypeRuleError
from kera_hw.support import Diagnostic
from kera_hw.types import (
    WORD_BITS,
    FixType,
    FloatType,
    IntType,
    TokenType,
    Type,
    bit_width,
    element_type,
    is_wide,
    item_bytes,
    leaf_types,
    numpy_dtype,
    shape_of,
)


def verify_graph(graph: Graph) -> list[Diagnostic]:
    """Diagnostics K0807 for every fault; empty when the graph is sound."""
    problems: list[str] = []
    seen: set[int] = set()
    for export in graph.exports:
        _verify_region_tree(export.region, problems, seen, WORD_BITS)
        _verify_export(export, problems)
    return [Diagnostic("K0807", message) for message in dict.fromkeys(problems)]


def verify_region(region: Region) -> list[str]:
    """Faults of one region and the regions it holds, as sentences."""
    problems: list[str] = []
    _verify_region_tree(region, problems, set())
    return problems


def _verify_region_tree(
    root: Region, problems: list[str], seen: set[int], most_bits: int | None = None
) -> None:
    stack = [root]
    while stack:
        region = stack.pop()
        if id(region) in seen:
            continue
        seen.add(id(region))
        for node in region.nodes():
            _verify_node(node, region, problems)
            if most_bits is not None and any(map(is_wide, node.types)):
                problems.append(f"A node of {node.opcode} is wider than the {most_bits} bits of an integer.")
            stack.extend(regions_of(node))


def _verify_node(node: Node, region: Region, problems: list[str]) -> None:
    spec = OPS.get(node.opcode)
    if spec is None:
        problems.append(f"The operation {node.opcode} is not in the registry.")
        return
    if tuple(key for key, _ in node.attrs) != spec.attrs:
        problems.append(f"A node of {node.opcode} does not have exactly the attributes {spec.attrs}.")
        return
    if any(not 0 <= ref.index < len(ref.node.types) for ref in node.inputs):
        problems.append(f"A node of {node.opcode} refers to an output that does not exist.")
        return
    try:
        types = spec.infer(tuple(ref.type for ref in node.inputs), dict(node.attrs))
    except TypeRuleError as fault:
        problems.append(f"{node.opcode}: {fault}")
        return
    except (TypeError, ValueError, AttributeError, IndexError, KeyError, OverflowError):
        problems.append(f"A node of {node.opcode} has an attribute of the wrong kind.")
        return
    if types != node.types and tuple(t.hash for t in types) != tuple(t.hash for t in node.types):
        problems.append(f"A node of {node.opcode} claims other types than its typing rule gives.")
    if node.opcode == "core.param":
        index = node.attr("index")
        if not isinstance(index, int) or not 0 <= index < len(region.params):
            problems.append("A parameter's index is outside its region's parameters.")
        elif region.params[index].hash != node.types[0].hash:
            problems.append(f"Parameter {index} has another type than its region says.")
    elif node.opcode == "core.constant" and types == node.types:
        _verify_constant(node, problems)


def _verify_constant(node: Node, problems: list[str]) -> None:
    kind, data = node.types[0], node.attr("value")
    if not isinstance(data, bytes) or isinstance(kind, TokenType):
        problems.append("A constant's value is not a byte string of a value type.")
        return
    count = 1
    for extent in shape_of(kind):
        count *= extent
    dtype = numpy_dtype(kind)
    if len(data) != count * item_bytes(element_type(kind)):
        problems.append(f"A constant of {kind} does not have the size of its type.")
    elif not _canonical(element_type(kind), data, dtype):
        problems.append(f"A constant of {kind} is not in canonical form.")


def _canonical(kind: Type, data: bytes, dtype: np.dtype[np.generic]) -> bool:
    """Bits beyond the width repeat the sign (or are clear); a NaN is the canonical one; bool is 0 or 1."""
    if isinstance(kind, FloatType):
        bits = np.frombuffer(data, f"<u{dtype.itemsize}")
        exponent = ((1 << kind.exponent_bits) - 1) << kind.fraction_bits
        magnitude = bits & ((1 << (kind.width_bits - 1)) - 1)
        return bool(np.all((magnitude <= exponent) | (bits == kind.canonical_nan)))
    if isinstance(kind, IntType) and is_wide(kind):
        return kind.min <= int.from_bytes(data, "little", signed=kind.signed) <= kind.max
    if isinstance(kind, (IntType, FixType)):
        raw = kind.raw if isinstance(kind, FixType) else kind
        values: Array = np.frombuffer(data, dtype.newbyteorder("<"))
        return bool(np.all((values >= raw.min) & (values <= raw.max)))
    assert bit_width(kind) == 1
    return bool(np.all(np.frombuffer(data, np.uint8) <= 1))


def _split_observations(export: Export) -> list[str]:
    """An observing operation stands at the end of an export, whole, and nowhere else."""
    ends = [ref for ref in export.region.results if observes(ref.node)]
    whole = [node.out(k) for node in dict.fromkeys(ref.node for ref in ends) for k in range(len(node.types))]
    if ends != whole:
        return [f"The observations of `{export.name}` are not each given once and whole."]
    inner = [node for region in regions_in_order([export.region]) for node in region.nodes()]
    apart = {ref.node for ref in ends}
    if any(observes(node) and node not in apart for node in inner):
        return [f"An observation of `{export.name}` does not stand at its end."]
    if any(observes(ref.node) for node in export.region.nodes() for ref in node.inputs):
        return [f"A value of `{export.name}` is computed from an observation."]
    return []


def _verify_export(export: Export, problems: list[str]) -> None:
    state = [var.initial.type for var in export.state]
    params = [leaf for _, kind in export.params for leaf in leaf_types(kind)]
    wanted = [t.hash for t in (*params, *state)]
    given = [t.hash for t in export.region.params]
    if given != wanted:
        problems.append(f"The region of `{export.name}` does not take its parameters' and state's leaves.")
    results = [t.hash for t in (*leaf_types(export.result), *state)]
    plain = [ref for ref in export.region.results if not observes(ref.node)]
    if list(export.region.results[: len(plain)]) != plain:
        problems.append(f"The observations of `{export.name}` do not come last.")
    problems += _split_observations(export)
    if [ref.type.hash for ref in plain] != results:
        problems.append(f"The region of `{export.name}` does not give its result's and state's leaves.")
    if any(var.initial.node.opcode != "core.constant" for var in export.state):
        problems.append(f"An initial state of `{export.name}` is not a constant.")
    if export.kind == "fn" and export.state:
        problems.append(f"The function `{export.name}` has state, which only a stream may.")

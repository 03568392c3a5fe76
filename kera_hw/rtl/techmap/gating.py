"""Selections between sums that share terms: one adder whose operand is chosen, not two and a multiplexer.

``c ? x - y : x + y`` is x plus y complemented by c, with c as the carry; ``c ? x + y : x`` is x plus y masked
by c. The choice falls into the adder's carry cell.
"""
from __future__ import annotations

from collections.abc import Mapping

from kera_hw.graph.node import Node, Ref
from kera_hw.rtl.techmap import words
from kera_hw.rtl.techmap.combinations import LinearCombination, combine, scale
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.source import Source
from kera_hw.rtl.techmap.words import Word, trimmed
from kera_hw.schedule.fpga.bits import Bits
from kera_hw.types import IntType

_MOST_TERMS = 12
_COMPARISONS = frozenset({"compare.lt", "compare.le", "compare.gt", "compare.ge"})

Side = tuple[Word, bool]
"""A word, and whether its negative is meant."""


def find(source: Source, wanted: Mapping[Ref, int], linear: set[Node]) -> set[Node]:
    """Selects that are better summed: their branches share a term, and what is left is simple."""
    found: set[Node] = set()
    combinations: dict[Node, LinearCombination] = {}
    for node in source.nodes:
        if node in linear:
            combinations[node] = _symbolic(source, node, combinations)
        elif _may_gate(node) and Ref(node, 0) in wanted:
            combination = _gated(source, node, combinations)
            if combination is not None:
                found.add(node)
                combinations[node] = combination
    return found


def _may_gate(node: Node) -> bool:
    return node.opcode == "control.select" and isinstance(node.types[0], IntType)


def _operand(source: Source, ref: Ref, combinations: dict[Node, LinearCombination]) -> LinearCombination:
    value = source.constant(ref)
    if value is not None:
        return LinearCombination({}, value)
    known = combinations.get(ref.node)
    if known is not None and source.uses[ref] == 1 and len(known.terms) <= _MOST_TERMS:
        return known
    return LinearCombination({(ref, -1): 1}, 0)


def _symbolic(source: Source, node: Node, combinations: dict[Node, LinearCombination]) -> LinearCombination:
    """The combination of a linear node, products of two values being variables."""
    own = LinearCombination({(Ref(node, 0), -1): 1}, 0)
    match node.opcode:
        case "integer.add" | "integer.sub":
            a, b = (_operand(source, ref, combinations) for ref in node.inputs)
            return combine(a, b, 1 if node.opcode == "integer.add" else -1)
        case "integer.neg":
            return scale(_operand(source, node.inputs[0], combinations), -1)
        case "bits.shl":
            amount = source.constant(node.inputs[1])
            shifted = _operand(source, node.inputs[0], combinations)
            return own if amount is None else scale(shifted, 1 << amount)
        case _:
            return own


def _gated(
    source: Source, node: Node, combinations: dict[Node, LinearCombination]
) -> LinearCombination | None:
    condition, then, otherwise = node.inputs
    if _compares(condition.node, then.node) or _compares(condition.node, otherwise.node):
        return None  # the comparison's own difference serves as the branch
    a, b = _operand(source, then, combinations), _operand(source, otherwise, combinations)
    common, left, right = split(a, b)
    if not common.terms or not (_simple(left) and _simple(right)):
        return None
    return combine(common, LinearCombination({(Ref(node, 0), -2): 1}, 0), 1)


def _compares(condition: Node, branch: Node) -> bool:
    """Whether the condition compares just what the branch subtracts."""
    while condition.opcode == "bits.not":
        condition = condition.inputs[0].node
    if condition.opcode not in _COMPARISONS or branch.opcode != "integer.sub":
        return False
    return set(condition.inputs) == set(branch.inputs)


def _simple(combination: LinearCombination) -> bool:
    """Nothing, a constant, or a value shifted."""
    if not combination.terms:
        return True
    values = [abs(value) for value in combination.terms.values()]
    return len(values) == 1 and combination.constant == 0 and values[0] & (values[0] - 1) == 0


def split(
    a: LinearCombination, b: LinearCombination
) -> tuple[LinearCombination, LinearCombination, LinearCombination]:
    """Terms that both combinations have, and what each has beside them."""
    shared = {variable: value for variable, value in a.terms.items() if b.terms.get(variable) == value}
    constant = a.constant if a.constant == b.constant else 0
    common = LinearCombination(shared, constant)
    return common, combine(a, common, -1), combine(b, common, -1)


def choose(net: Net, condition: Bits, then: Side, otherwise: Side) -> tuple[Word, Word]:
    """A word and a one-bit word whose sum is the chosen side: a negative is a complement and one."""
    bits = [_complemented(net, word, negate) for word, negate in (then, otherwise)]
    width = words.joint_width(bits)
    chosen = net.choose(condition, bits[0].extend(width), bits[1].extend(width))
    signed = any(word.signed for word in bits)
    carry = net.choose(condition, *(words.constant(int(side[1])).bit(0) for side in (then, otherwise)))
    return trimmed(chosen, signed), trimmed(carry, False)


def _complemented(net: Net, word: Word, negate: bool) -> Word:
    if not negate:
        return word
    if word.value is not None:
        return words.constant(-word.value - 1)
    width = word.width + (not word.signed)
    return trimmed(net.invert(word.extend(width)), True)

"""From the flat region to cells: scalar rules one by one, sums and products in groups.

Additions, subtractions, negations, constant multiples and products are not mapped one by one: a value that
something else needs is the *root* of a linear combination of *variables* (other values and product tiles),
and roots that become computable together are realised together, sharing sub-sums.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from kera_hw.graph.node import Node, Origin, Ref, join_origins
from kera_hw.ops.intervals import raw_interval
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.lower.flatten import TABLE
from kera_hw.rtl.techmap import cases, constmul, gating, iteration, linear, product, scalar, words
from kera_hw.rtl.techmap.combinations import LinearCombination, Variable, combine, scale, summands
from kera_hw.rtl.techmap.demand import demanded
from kera_hw.rtl.techmap.items import Iteration
from kera_hw.rtl.techmap.linear import Target
from kera_hw.rtl.techmap.memories import Memories
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.options import Capabilities
from kera_hw.rtl.techmap.sharing import Sharing
from kera_hw.rtl.techmap.source import Source
from kera_hw.rtl.techmap.tables import Tables
from kera_hw.rtl.techmap.words import Word
from kera_hw.schedule.fpga.bits import slice_bits
from kera_hw.support import KeraError
from kera_hw.target import GAP
from kera_hw.types import BoolType, IntType, TensorType

_SUMS = frozenset({"integer.add", "integer.sub", "integer.neg"})
_PRODUCTS = frozenset({"integer.mul", "integer.mul_wide"})
MAPPED = frozenset(scalar.RULES) | _SUMS | _PRODUCTS | {
    "compare.eq", "compare.ne", "control.loop", "core.constant", "core.param", "integer.add_carry",
    "integer.saturating_mul", "tensor.index", "tensor.update",
}
"""What a flat region may hold."""
_MAX_SHARED = 24
"""Terms of a sum used several times beyond which it is realised once instead of being spread."""
_MAX_TERMS = 400
_PLAIN_CONDITIONS = frozenset({"bits.test", "bits.not", "core.param"})
"""Conditions ready early enough for a wide multiplexer to wait for all of them."""


class Mapper:
    """Maps every used value of a flat region to a word."""

    def __init__(
        self, source: Source, net: Net, able: Capabilities, origins: Mapping[Node, Origin],
        map_step: iteration.MapStep,
    ) -> None:
        self._map_step = map_step
        self.source = source
        self.net = net
        self.able = able
        self.origins = origins
        self.wanted = demanded(source)
        self.words: dict[Ref, Word] = {}
        self.notes: list[str] = []
        self._linear = self._find_linear()
        self._linear |= gating.find(source, self.wanted, self._linear)
        self._exact = self._find_exact()
        self._roots = self._find_roots()
        self._in_logic: set[Node] = set()
        self.sharing = Sharing(net, able)
        self._spare_dsps = self._allot_dsps()
        self.memories = Memories(source, able)
        self._tables = Tables(source, able, self.memories.blocks())
        self._cases, self._inside = cases.Finder(source).cases(self._linear)
        self.notes += filter(None, [self._tables.note()])
        self._combinations: dict[Ref, LinearCombination] = {}
        self._tiles: dict[Ref, list[tuple[Word, int]]] = {}
        self._made: dict[Variable, Word] = {}
        self._places: dict[Node, Origin | None] = {}

    # Which values are sums

    def _is_linear(self, node: Node) -> bool:
        constant = self.source.constant
        match node.opcode:
            case "integer.add" | "integer.sub" | "integer.neg" | "integer.mul" | "integer.mul_wide":
                return True
            case "bits.shl":
                return constant(node.inputs[1]) is not None
            case "convert.cast":
                return isinstance(node.types[0], IntType) and isinstance(node.inputs[0].type, IntType)
            case _:
                return False

    def _find_linear(self) -> set[Node]:
        return {
            node for node in self.source.nodes if Ref(node, 0) in self.wanted and self._is_linear(node)
        }

    def _raw_fits(self, node: Node) -> bool:
        """Whether the operation can't wrap, by the ranges of its operands."""
        ranges = [self.source.ranges[ref] for ref in node.inputs]
        low, high = raw_interval(node.types[0])
        match node.opcode:
            case "integer.add":
                span = (ranges[0][0] + ranges[1][0], ranges[0][1] + ranges[1][1])
            case "integer.sub":
                span = (ranges[0][0] - ranges[1][1], ranges[0][1] - ranges[1][0])
            case "integer.neg":
                span = (-ranges[0][1], -ranges[0][0])
            case "integer.mul" | "integer.mul_wide":
                corners = [x * y for x in ranges[0] for y in ranges[1]]
                span = (min(corners), max(corners))
            case "control.select":
                return True
            case "bits.shl":
                amount = ranges[1][0]
                if amount > 64:
                    return False
                span = (ranges[0][0] << amount, ranges[0][1] << amount)
            case _:
                span = ranges[0]
        return low <= span[0] and span[1] <= high

    def _find_exact(self) -> set[Node]:
        """Linear nodes equal to their combination over the integers, not only modulo their width."""
        exact: set[Node] = set()
        for node in self.source.nodes:
            if node in self._linear and self._raw_fits(node):
                operands = summands(node)
                product_of_values = node.opcode in _PRODUCTS and self._constant_factor(node) is None
                if product_of_values or all(
                    ref.node not in self._linear or ref.node in exact for ref in operands
                ):
                    exact.add(node)
        return exact

    def _constant_factor(self, node: Node) -> tuple[Ref, int] | None:
        """For a product with a constant: the other operand and the constant."""
        for k in (1, 0):
            value = self.source.constant(node.inputs[k])
            if value is not None:
                return node.inputs[1 - k], value
        return None

    def _inlines(self, user: Node, operand: Ref) -> bool:
        """Whether a linear user takes the operand's combination rather than its value."""
        if user not in self._linear:
            return False
        if user.opcode in _PRODUCTS and self._constant_factor(user) is None:
            return False
        if operand not in summands(user):
            return False
        if operand.node in self._exact:
            return True
        return width_of(user.types[0]) <= width_of(operand.type)

    def _allot_dsps(self) -> int:
        """Give multipliers to the largest products first, the rest to logic; how many are left over."""
        dsp = self.able.dsp
        if dsp is None:
            return 0
        found: list[tuple[int, int, Node]] = []
        for node in self.source.nodes:
            if node in self._linear and node.opcode in _PRODUCTS and self._constant_factor(node) is None:
                widths = [words.range_width(self.source.ranges[ref])[0] for ref in node.inputs]
                if min(widths) > product.SMALL_BITS:
                    tiles = -(-widths[0] // dsp.a_bits) * -(-widths[1] // dsp.b_bits)
                    found.append((widths[0] * widths[1], tiles, node))
        left = self.able.dsp_count * (self.able.turns if self.sharing.works else 1)
        for _, tiles, node in sorted(found, key=lambda item: -item[0]):
            if tiles <= left:
                left -= tiles
            else:
                self._in_logic.add(node)
        if self._in_logic:
            self.notes.append(
                f"{len(self._in_logic)} of {len(found)} products are built from logic, the others in "
                f"{self.able.dsp_count - left} multipliers."
            )
        return 0 if self.sharing.works else left

    def _find_roots(self) -> set[Node]:
        roots = {ref.node for ref in self.source.results if ref.node in self._linear}
        for node in self.source.nodes:
            for ref in node.inputs:
                if ref.node in self._linear and not self._inlines(node, ref):
                    roots.add(ref.node)
        sizes: dict[Node, int] = {}
        for node in self.source.nodes:
            if node not in self._linear:
                continue
            size = 0
            for ref in summands(node):
                if self.source.constant(ref) is None:
                    size += 1 if ref.node in roots else sizes.get(ref.node, 1)
            sizes[node] = size
            if size > (_MAX_TERMS if self.source.uses[Ref(node, 0)] < 2 else _MAX_SHARED):
                roots.add(node)
        return roots

    # Order of work

    def _rounds(self) -> dict[int, list[Node]]:
        """The nodes by how many rounds of sums lie before each; roots of one round are realised together."""
        before: dict[Node, int] = {}
        variables: dict[Node, int] = {}  # of a linear node: the most rounds before one of its variables
        for node in self.source.nodes:
            below = 0
            for ref in node.inputs:
                inlined = ref.node in self._linear and ref.node not in self._roots
                below = max(below, variables[ref.node] if inlined else before[ref.node])
            if node in self._linear:
                variables[node] = below
                before[node] = below + (node in self._roots)
            else:
                before[node] = below
        rounds: dict[int, list[Node]] = defaultdict(list)
        for node in self.source.nodes:
            if node not in self._linear or node in self._roots:
                rounds[before[node]].append(node)
        return rounds

    def run(self) -> None:
        """Map everything that is wanted."""
        rounds = self._rounds()
        for number in sorted(rounds):
            self.sharing.round = number
            nodes = [n for n in rounds[number] if any(Ref(n, i) in self.wanted for i in range(len(n.types)))]
            self._realise([node for node in nodes if node in self._roots])
            for node in nodes:
                if node not in self._roots:
                    self.net.origin = self.origins.get(node)
                    self._map(node)

    # Sums

    def _combination(self, ref: Ref) -> LinearCombination:
        """The combination of a linear value, inlining what is not realised on its own."""
        found = self._combinations.get(ref)
        if found is None:
            pending = [ref]
            while pending:
                item = pending[-1]
                missing = [r for r in self._inlined(item.node) if r not in self._combinations]
                if missing:
                    pending.extend(missing)
                    continue
                pending.pop()
                if item not in self._combinations:
                    inner = [self._places[ref.node] for ref in self._inlined(item.node)]
                    self._places[item.node] = join_origins((self.origins.get(item.node), *inner))
                    self._combinations[item] = self._own_combination(item.node)
            found = self._combinations[ref]
        return found

    def _inlined(self, node: Node) -> list[Ref]:
        if node.opcode in _PRODUCTS and self._constant_factor(node) is None:
            return []
        return [r for r in summands(node) if r.node in self._linear and r.node not in self._roots]

    def _operand(self, ref: Ref) -> LinearCombination:
        value = self.source.constant(ref)
        if value is not None:
            return LinearCombination({}, value)
        if ref.node in self._linear and ref.node not in self._roots:
            return self._combinations[ref]
        return LinearCombination({(ref, -1): 1}, 0)

    def _own_combination(self, node: Node) -> LinearCombination:
        match node.opcode:
            case "integer.add":
                return combine(self._operand(node.inputs[0]), self._operand(node.inputs[1]), 1)
            case "integer.sub":
                return combine(self._operand(node.inputs[0]), self._operand(node.inputs[1]), -1)
            case "integer.neg":
                return scale(self._operand(node.inputs[0]), -1)
            case "bits.shl":
                amount = self.source.constant(node.inputs[1])
                assert amount is not None
                return scale(self._operand(node.inputs[0]), 1 << amount)
            case "convert.cast":
                return self._operand(node.inputs[0])
            case "control.select":
                return self._gated_combination(node)
            case _:
                return self._product_combination(node)

    def _gated_combination(self, node: Node) -> LinearCombination:
        """What both branches share, and one word that is chosen between what they don't."""
        ref = Ref(node, 0)
        then, otherwise = (self._operand(item) for item in node.inputs[1:])
        common, rest_then, rest_otherwise = gating.split(then, otherwise)
        self.net.origin = self._places[node]
        width = min(self.wanted[ref], width_of(node.types[0]))
        sides = [self._side(rest, width) for rest in (rest_then, rest_otherwise)]
        condition = self.word(node.inputs[0]).bit(0)
        chosen, carry = gating.choose(self.net, condition, *sides)
        terms = dict(common.terms)
        for place, word in ((-2, chosen), (-3, carry)):
            if word.width:
                self._made[ref, place] = word
                terms[ref, place] = 1
        return LinearCombination(terms, common.constant)

    def _side(self, combination: LinearCombination, width: int) -> gating.Side:
        """A branch's own part as a word and whether it is to be negated."""
        if len(combination.terms) == 1 and combination.constant == 0:
            ((variable, value),) = combination.terms.items()
            magnitude = abs(value)
            if magnitude & (magnitude - 1) == 0:
                return words.shifted(self._variable_word(variable), magnitude.bit_length() - 1), value < 0
        variables = [self._variable_word(variable) for variable in combination.terms]
        target = Target(dict(enumerate(combination.terms.values())), combination.constant, width)
        return linear.realise(self.net, variables, [target])[0], False

    def _product_combination(self, node: Node) -> LinearCombination:
        factor = self._constant_factor(node)
        if factor is not None:
            return scale(self._operand(factor[0]), factor[1])
        ref = Ref(node, 0)
        width = min(self.wanted[ref], width_of(node.types[0]))
        tiles = self._product_tiles(node, width)
        self._tiles[ref] = tiles
        return LinearCombination({(ref, i): weight for i, (_, weight) in enumerate(tiles)}, 0)

    def _product_tiles(self, node: Node, width: int) -> list[tuple[Word, int]]:
        self.net.origin = self.origins.get(node)
        a, b = (self.word(ref) for ref in node.inputs)
        dsp = None if node in self._in_logic else self.able.dsp
        return product.multiply_terms(self.net, a, b, width, dsp)

    def _realise(self, roots: list[Node]) -> None:
        """Realise roots whose combinations share variables together, each group once."""
        combinations = {node: self._combination(Ref(node, 0)) for node in roots}
        for group in _groups(combinations):
            read = (variable for node in group for variable in combinations[node].terms)
            variables = list(dict.fromkeys(read))
            index = {variable: i for i, variable in enumerate(variables)}
            targets = [self._target(node, combinations[node], index) for node in group]
            self.net.origin = self._places[group[0]]
            words_of = [self._variable_word(variable) for variable in variables]
            values, targets = self.sharing.drawn(words_of, targets)
            results, taken = constmul.realise(self.net, values, targets, self.able.dsp, self._spare_dsps)
            self._spare_dsps -= taken
            for node, word in zip(group, results):
                self._settle(Ref(node, 0), word)

    def _target(self, node: Node, combination: LinearCombination, index: dict[Variable, int]) -> Target:
        ref = Ref(node, 0)
        width = min(self.wanted[ref], width_of(node.types[0]))
        terms: dict[int, int] = {}
        exact = node in self._exact
        for variable, value in combination.terms.items():
            coefficient = value if exact and abs(value) < 1 << width else _symmetric(value, width)
            if coefficient:
                terms[index[variable]] = coefficient
        return Target(terms, combination.constant, width, self._places[node])

    def _variable_word(self, variable: Variable) -> Word:
        ref, tile = variable
        if tile < -1:
            return self._made[variable]
        return self.word(ref) if tile < 0 else self._tiles[ref][tile][0]

    # Everything else

    def word(self, ref: Ref) -> Word:
        """The word of a mapped value or constant."""
        value = self.source.constant(ref)
        return words.constant(value) if value is not None else self.words[ref]

    def _settle(self, ref: Ref, word: Word) -> None:
        """Record a word, read in the type of the value and as narrow as its range."""
        kind, wanted = ref.type, self.wanted.get(ref, 1)
        low, high = raw_interval(kind)
        width = 1 if isinstance(kind, BoolType) else width_of(kind)
        own_low, own_high = word.range
        if not (low <= own_low and own_high <= high):
            count = min(width, wanted)
            word = words.trimmed(word.extend(count), scalar.is_signed(kind) and count == width)
        least, negative = words.range_width(self.source.ranges[ref])
        if wanted >= width:
            word = words.narrowed(word.bits, word.signed, self.source.ranges[ref])
        elif negative and not word.signed and least <= wanted:
            # The low bits tell the whole value. Whoever takes a cast that changes nothing for its operand
            # reads the word as that integer.
            word = words.trimmed(word.extend(least), True)
        self.words[ref] = word

    def _map(self, node: Node) -> None:
        opcode = node.opcode
        if opcode in ("core.constant", "core.param") or node in self._inside:
            return
        if isinstance(node.types[0], TensorType):
            return  # a version of a memory: writes are made in the end
        ref = Ref(node, 0)
        if self.memories.is_read(node):
            self._settle(ref, self.memories.read(self.net, node, self.word(node.inputs[1])))
            return
        if opcode == "tensor.index":
            index = self.word(node.inputs[1])
            self._settle(ref, self._tables.read(self.net, node, index, self.wanted[ref]))
            return
        if node in self._cases:
            case = self._cases[node]
            asked = (condition.node for condition, _ in case.conditions)
            self.net.origin = join_origins(map(self.origins.get, (*case.rungs, *asked)))
            self._settle(ref, cases.realise(self.net, self.source, case, self.word, self.wanted[ref]))
            return
        args = [self.word(ref) for ref in node.inputs]
        if opcode == "integer.add_carry":
            for i, word in enumerate(scalar.add_carry(self.net, node, args)):
                self._settle(Ref(node, i), word)
            return
        if opcode == "control.loop":
            self._iteration(node, args)
            return
        if opcode in ("compare.eq", "compare.ne"):
            spans = [self.source.ranges[ref] for ref in node.inputs]
            same = words.equal(self.net, args[0], args[1], spans)
            word = words.trimmed(same if opcode == "compare.eq" else self.net.invert(same), False)
        elif opcode == "integer.saturating_mul":
            word = scalar.saturate(self.net, self._exact_product(node), node.types[0])
        elif opcode == "control.select" and (tree := self._select_tree(node)) is not None:
            word = tree
        else:
            rule = scalar.RULES.get(opcode)
            if rule is None:
                raise KeraError([TABLE.diagnostic(GAP, node)])
            word = rule(self.net, node, args, self.wanted[ref])
        self._settle(ref, word)

    def _iteration(self, node: Node, args: list[Word]) -> None:
        """A loop that is kept: its registers are one cell, which shows every carried value."""
        registers, step = iteration.step_of(node, self._map_step)
        widths = [width_of(ref.type) for ref in node.inputs]
        initial = tuple(word.extend(width) for word, width in zip(args, widths))
        count = node.attr("count")
        assert isinstance(count, int)
        whole = self.net.bits(Iteration(sum(widths), initial, registers, step, count))
        low = 0
        for k, width in enumerate(widths):
            ref = Ref(node, k)
            self.words[ref] = words.trimmed(slice_bits(whole, low, width), scalar.is_signed(ref.type))
            low += width

    def _exact_product(self, node: Node) -> Word:
        width = sum(width_of(ref.type) for ref in node.inputs)
        tiles = self._product_tiles(node, width)
        target = Target({i: weight for i, (_, weight) in enumerate(tiles)}, 0, width)
        values, targets = self.sharing.drawn([word for word, _ in tiles], [target])
        (word,) = linear.realise(self.net, values, targets)
        a, b = (self.source.ranges[ref] for ref in node.inputs)
        corners = [x * y for x in a for y in b]
        signed = min(corners) < 0
        return words.narrowed(word.extend(width), signed, (min(corners), max(corners)))

    def _select_tree(self, node: Node) -> Word | None:
        """Four-way (or wider) selection: branches that select on one shared condition."""

        def branches_here(ref: Ref) -> bool:
            return self._opens(ref) and ref.node not in self._cases

        conditions = [node.inputs[0]]
        opened = [node]
        choices = [node.inputs[2], node.inputs[1]]
        while len(conditions) < 8:
            inner = {c.node.inputs[0] for c in choices if branches_here(c)}
            if len(inner) != 1:
                break
            condition = inner.pop()
            if condition in conditions or condition.node.opcode not in _PLAIN_CONDITIONS:
                break
            conditions.insert(0, condition)
            opened.extend(c.node for c in choices if self._opens(c))
            choices = [
                item
                for c in choices
                for item in ((c.node.inputs[2], c.node.inputs[1]) if branches_here(c) else (c, c))
            ]
        if len(conditions) < 2 or len(set(choices)) < 3:
            return None
        bits = [self.word(c).bit(0) for c in conditions]
        branches = [self.word(choice) for choice in choices]
        self.net.origin = join_origins(map(self.origins.get, opened))
        return scalar.select_tree(self.net, bits, branches, self.wanted[Ref(node, 0)])

    def _opens(self, ref: Ref) -> bool:
        """Whether a choice can be taken apart: a selection for this use alone, whose branches have words."""
        if ref.node.opcode != "control.select" or ref.node in self._linear:
            return False
        return self.source.uses[ref] == 1


def _symmetric(value: int, width: int) -> int:
    """The residue modulo 2^width nearest zero."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) & 1 else value


def _groups(combinations: dict[Node, LinearCombination]) -> list[list[Node]]:
    """Roots connected by shared variables, in order."""
    leader: dict[Node, Node] = {node: node for node in combinations}

    def find(node: Node) -> Node:
        while leader[node] is not node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    owner: dict[Variable, Node] = {}
    for node, combination in combinations.items():
        for variable in combination.terms:
            first = owner.setdefault(variable, node)
            leader[find(node)] = find(first)
    groups: dict[Node, list[Node]] = defaultdict(list)
    for node in combinations:
        groups[find(node)].append(node)
    return list(groups.values())

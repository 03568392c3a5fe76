"""Tables of constants: in LUTs where they are small, else in block RAM while the device has any left."""
from __future__ import annotations

from kera_hw.graph.node import Node
from kera_hw.rtl.lower.builder import width_of
from kera_hw.rtl.techmap import words
from kera_hw.rtl.techmap.items import Stored
from kera_hw.rtl.techmap.net import Net
from kera_hw.rtl.techmap.options import Capabilities
from kera_hw.rtl.techmap.source import Source
from kera_hw.rtl.techmap.words import Word, range_width, trimmed
from kera_hw.schedule.fpga.bits import Bits, bits_width, concat, const_bits, slice_bits
from kera_hw.schedule.fpga.units.memory import DEEPEST, block_shape

_LEAST_ENTRIES = 64
_LEAST_BITS = 1024
"""Tables below either are cheaper in LUTs: 16 entries of one bit are one."""


class Tables:
    """The tables of one design, largest first into the block RAMs there are but for those ``taken``."""

    def __init__(self, source: Source, able: Capabilities, taken: int = 0) -> None:
        self._able = able
        self._source = source
        device = able.model.device
        left = able.bram_count - taken
        found: list[tuple[int, int, Node]] = []
        for node in source.nodes:
            if node.opcode != "tensor.index" or node.inputs[0].node not in source.tables:
                continue
            contents = source.tables[node.inputs[0].node]
            width = self._width(contents)[0]
            _, step = block_shape(min(len(contents), DEEPEST), device)
            blocks = -(-width // max(1, step)) * -(-len(contents) // DEEPEST)
            if step and len(contents) >= _LEAST_ENTRIES and len(contents) * width >= _LEAST_BITS:
                found.append((len(contents) * width, blocks, node))
        self._in_blocks: set[Node] = set()
        for _, blocks, node in sorted(found, key=lambda item: -item[0]):
            if blocks <= left:
                left -= blocks
                self._in_blocks.add(node)
        self.left_out = len(found) - len(self._in_blocks)

    def note(self) -> str | None:
        """What to tell the user when block RAM did not suffice."""
        if not self.left_out:
            return None
        count = self.left_out + len(self._in_blocks)
        return (
            f"{self.left_out} of {count} large tables are built from LUTs: there are only "
            f"{self._able.bram_count} block RAMs."
        )

    @staticmethod
    def _width(contents: list[int]) -> tuple[int, bool]:
        return range_width((min(contents), max(contents)))

    def read(self, net: Net, node: Node, index: Word, wanted: int) -> Word:
        """The word of a ``tensor.index``; an index past the end reads the last entry."""
        contents = self._source.tables[node.inputs[0].node]
        bits = (len(contents) - 1).bit_length()
        reach = index.range[1]
        if reach >= 1 << bits:
            index = words.clamp(net, index, 0, len(contents) - 1)
        elif reach >= len(contents):
            contents = [*contents, *[contents[-1]] * ((1 << bits) - len(contents))]
        width, signed = self._width(contents)
        width = min(max(1, width), wanted, width_of(node.types[0]))
        whole = width == self._width(contents)[0]
        kept = [value & (1 << width) - 1 for value in contents]
        # Low bits equal in all entries are no part of the memory; equal high bits went with the range.
        same = 0
        while same < width and len({value >> same & 1 for value in kept}) == 1:
            same += 1
        low = const_bits(kept[0], same)
        address = slice_bits(index.bits, 0, min(bits, index.width))
        body = [value >> same for value in kept[: 1 << min(bits, index.width)]]
        if same == width:
            return trimmed(low, signed and whole)
        if node in self._in_blocks:
            read = self._blocks(net, address, body, width - same)
        else:
            read = net.rom(address, body, width - same)
        return trimmed(concat((low, read)), signed and whole)

    def _blocks(self, net: Net, address: Bits, body: list[int], width: int) -> Bits:
        """A memory, or two halves and a choice where it is deeper than a block."""
        stages = self._able.model.device.area.bram_stages
        if len(body) <= DEEPEST:
            return net.bits(Stored(width, (address,), tuple(body), stages))
        top = bits_width(address) - 1
        below = slice_bits(address, 0, top)
        halves = [self._blocks(net, below, part, width) for part in (body[: 1 << top], body[1 << top :])]
        return net.choose(slice_bits(address, top, 1), halves[1], halves[0])

"""Designs too large for their device, refused before anybody spends minutes on them.

A refusal says which loops make the design so large, and at which initiation interval its operations alone
would fit, if their units were shared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kera_hw.driver.options import TargetOptions
from kera_hw.graph import Graph
from kera_hw.graph.node import Origin
from kera_hw.loops.counting import Counted, Nest, count_operations
from kera_hw.lower.export import lower_export
from kera_hw.rtl.lower import FlatDesign
from kera_hw.rtl.techmap.bound import Needs, Product, least_needs, might_exceed, needs_of
from kera_hw.schedule.fpga.device import Device
from kera_hw.support import Diagnostic, KeraError, Label, SourceFile, Span

_PLANNED_ANYWAY_LUTS = 20_000
"""A design of fewer LUTs at the least is planned within seconds: by how much it exceeds its device is worth
knowing, and its Verilog may serve another."""


def refuse_oversize(
    flat: FlatDesign, program: Graph, device: Device, options: TargetOptions, files: Mapping[str, SourceFile]
) -> None:
    """Raises KeraError (K0604) for a large design of which no circuit can fit the device.

    ``program`` holds the export that was made flat, optimised.
    """
    if not might_exceed(flat, device, options.dsp):
        return
    needs = least_needs(flat, device)
    luts = int(needs.least_luts(device, options.dsp))
    if luts <= max(device.lut, _PLANNED_ANYWAY_LUTS):
        return
    blocks = device.dsp if options.dsp is None else min(options.dsp, device.dsp)
    beside = f" beside {blocks:,} multiplier blocks" if blocks else ""
    message = f"`{flat.name}` needs at least {luts:,} LUTs{beside}, but {device.name} has {device.lut:,}."
    found = Diagnostic("K0604", message, notes=(
        f"Each item takes {_listed(_product_texts(needs.products))}.",
        _sharing(needs, device, options.dsp),
        "Choose a larger part, or export a smaller piece, such as the loop's body, and stream over it.",
    ))
    raise KeraError([_placed(found, _most(program, device), files)])


def explained(
    refusal: Diagnostic, program: Graph, device: Device, dsp: int | None, files: Mapping[str, SourceFile]
) -> Diagnostic:
    """A refusal to unroll (K0610) with the loops at fault and what their operations would take."""
    counts = _counts(program)
    if not counts:
        return refusal
    needs = sum((needs_of(c.opcode, c.type, c.bits, times) for c, times in counts.items()), Needs())
    most = _heaviest(counts, device)
    within = Counter({c: times for c, times in counts.items() if c.nest == most.nest})
    notes = [_work_text(most, within)]
    if needs.least_luts(device, dsp) > device.lut:
        notes.append(_sharing(needs, device, dsp))
    return _placed(replace(refusal, notes=(*notes, *refusal.notes)), most, files)


def _counts(program: Graph) -> Counter[Counted]:
    """What the only export unrolls to; nothing where it has no loop program."""
    try:
        return count_operations(lower_export(program.exports[0], program.origins))
    except KeraError:
        return Counter()


def _most(program: Graph, device: Device) -> Counted | None:
    counts = _counts(program)
    return _heaviest(counts, device) if counts else None


def _heaviest(counts: Mapping[Counted, int], device: Device) -> Counted:
    """The operation whose loops take the most LUTs, if no multiplier had any, or else run the most."""
    weights: dict[Nest, float] = defaultdict(float)
    for counted, times in counts.items():
        needs = needs_of(counted.opcode, counted.type, counted.bits, times)
        weights[counted.nest] += needs.least_luts(device, 0) + times / 1e6
    nest = max(weights, key=lambda item: weights[item])
    return max((c for c in counts if c.nest == nest), key=lambda c: (sum(c.bits), c.opcode))


# Words


def _sharing(needs: Needs, device: Device, dsp: int | None) -> str:
    interval = needs.least_initiation_interval(device, dsp)
    return (
        f"With units shared among these operations, {device.name} could take an item every {interval:,} "
        "cycles at the earliest (the resource-constrained minimum II). A design this large shares them where "
        "its loops stay loops."
    )


def _work_text(most: Counted, within: Mapping[Counted, int]) -> str:
    """Where most of the work stands, in which loops, and of what kind it is."""
    products: Counter[Product] = Counter()
    sums = others = 0
    for counted, times in within.items():
        needs = needs_of(counted.opcode, counted.type, counted.bits, times)
        products += needs.products
        sums += times if needs.luts else 0
        others += 0 if needs.luts or needs.products else times
    parts = _product_texts(products)
    parts += [f"{sums:,} additions"] if sums else []
    parts += [f"{others:,} other operations"] if others else []
    return f"Most of it is {_loops_text(most)}: {_listed(parts)}."


def _loops_text(most: Counted) -> str:
    lines = list(dict.fromkeys(place.line for place in most.nest.places if place is not None))
    here = most.place.line if most.place is not None else None
    times = " x ".join(f"{count:,}" for count in most.nest.counts)
    loops = [str(line) for line in lines if line != here]
    work = "its body" if here is None else f"line {here}"
    if loops:
        work += f" in the loop{'s' if len(loops) > 1 else ''} of line{'s' if len(loops) > 1 else ''} "
        work += _listed(loops)
    return f"{work}, {times} times" if times else work


def _product_texts(products: Mapping[Product, int]) -> list[str]:
    by_width: Counter[tuple[int, int]] = Counter()
    for product, count in products.items():
        by_width[product.wide, product.narrow] += count
    return [f"{count:,} products of {a} by {b} bits" for (a, b), count in by_width.most_common(3)]


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _placed(found: Diagnostic, most: Counted | None, files: Mapping[str, SourceFile]) -> Diagnostic:
    """The diagnostic at the outermost of the loops, and the operation inside beside it."""
    if most is None:
        return found
    outer = next((place for place in most.nest.places if place is not None), most.place)
    span = _line(outer, files)
    if outer is None or span is None:
        return found
    labels: tuple[Label, ...] = ()
    inner = _line(most.place, files)
    if most.place is not None and inner is not None and most.place != outer:
        times = " x ".join(f"{count:,}" for count in most.nest.counts)
        labels = (Label(inner, f"made {times} times", files[most.place.path]),)
    return replace(found, file=files[outer.path], span=span, labels=labels)


def _line(place: Origin | None, files: Mapping[str, SourceFile]) -> Span | None:
    """The text of a line, without what is left of it."""
    if place is None or place.path not in files:
        return None
    file = files[place.path]
    text = file.line_text(place.line)
    start = file.line_starts[place.line - 1] + len(text.encode()) - len(text.lstrip().encode())
    return Span(start, start + max(1, len(text.strip().encode())))

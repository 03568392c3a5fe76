"""The native set as a page: operations and types that go alike together."""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from kera_hw.legal.native import CAPABILITIES, NATIVE, Domain, Native, Signature
from kera_hw.types import Type


def page() -> str:
    """The table of the native set, and what targets may have beside it."""
    lines = ["| operations | types | as the registry says for |", "|---|---|---|"]
    lines += [f"| {verbs} | {types} | {domain.value} |" for verbs, types, domain in _rows(NATIVE)]
    lines += ["", "## Capabilities", "", "| name | operations |", "|---|---|"]
    lines += [f"| `{name}` | {_brief(native)} |" for name, native in CAPABILITIES.items()]
    return "\n".join(lines) + "\n"


def _rows(native: Native) -> Iterator[tuple[str, str, Domain]]:
    """Operations by their types and domain."""
    by_operation: dict[tuple[str, Domain], list[Signature]] = {}
    for row, domain in native.items():
        by_operation.setdefault((row.opcode, domain), []).append(row)
    alike: dict[tuple[str, Domain], list[str]] = {}
    for (opcode, domain), rows in by_operation.items():
        types = _conversions(rows) if opcode.startswith("convert.") else _operands(rows)
        alike.setdefault((types, domain), []).append(opcode)
    for (types, domain), opcodes in alike.items():
        yield ", ".join(f"`{opcode}`" for opcode in opcodes), types, domain


def _operands(rows: Iterable[Signature]) -> str:
    """The type of the operands; of a shift that of what is shifted."""
    firsts = [row.operands[-1] if row.opcode.startswith("control.") else row.operands[0] for row in rows]
    return _names(firsts)


def _conversions(rows: Iterable[Signature]) -> str:
    """Sources with their targets, those of equal targets together; none converts to itself."""
    targets: dict[Type, set[Type]] = {}
    for row in rows:
        targets.setdefault(row.operands[0], set()).add(row.result)
    alike: dict[frozenset[Type], list[Type]] = {}
    for source, found in targets.items():
        alike.setdefault(frozenset(found | {source}), []).append(source)
    return "; ".join(
        f"{_names(sources)} to {_names(kinds if len(sources) > 1 else targets[sources[0]])}"
        for kinds, sources in alike.items()
    )


def _names(kinds: Iterable[Type]) -> str:
    return ", ".join(sorted(map(str, kinds), key=lambda name: (name.rstrip("0123456789"), len(name), name)))


def _brief(native: Native) -> str:
    return "; ".join(f"{opcodes} on {types}" for opcodes, types, _ in _rows(native))

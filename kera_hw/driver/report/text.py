"""The pipeline chart for a terminal: source lines down, cycles across, what works where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kera_hw.driver.report.chart import Row

_LETTERS = {"logic": "L", "add": "A", "mul": "M", "mux": "X", "table": "T", "state": "S", "input": "I"}
_LABEL_MAX, _LABEL_MIN, _GAP = 44, 12, 2


def pipeline_text(rows: Sequence[Row], cycles: int, width_chars: int = 110) -> str:
    """The chart in ``width_chars`` columns; a long pipeline has several cycles in one column.

    An entry is the number of cells at work and the letter of their most frequent kind.
    """
    label = max(_LABEL_MIN, min(_LABEL_MAX, max((len(row.label) for row in rows), default=0)))
    merged = _merge(rows, cycles, max(1, (width_chars - label) // 6))
    per_column, columns = merged
    cells = [[_entry(column) for column in line] for line in columns]
    heads = [str(k * per_column) for k in range(len(cells[0]) if cells else 0)]
    wide = max((len(text) for line in [heads, *cells] for text in line), default=1) + _GAP
    lines = [" " * label + "".join(text.rjust(wide) for text in heads).rstrip()]
    lines += [
        _clip(row.label, label).ljust(label) + "".join(text.rjust(wide) for text in line).rstrip()
        for row, line in zip(rows, cells, strict=True)
    ]
    used = {kind for row in rows for kinds in row.stages.values() for kind in kinds}
    lines.append(", ".join(f"{_LETTERS[kind]} {kind}" for kind in _LETTERS if kind in used))
    if per_column > 1:
        lines.append(f"Each column stands for {per_column} cycles.")
    return "\n".join(lines)


def _merge(rows: Sequence[Row], cycles: int, most: int) -> tuple[int, list[list[Counter[str]]]]:
    """Cycles per column, and the counts of each row's columns."""
    per_column = -(-cycles // most)
    columns = -(-cycles // per_column)
    table: list[list[Counter[str]]] = []
    for row in rows:
        line = [Counter[str]() for _ in range(columns)]
        for stage, kinds in row.stages.items():
            line[stage // per_column].update(kinds)
        table.append(line)
    return per_column, table


def _entry(kinds: Counter[str]) -> str:
    return f"{kinds.total()}{_LETTERS[kinds.most_common(1)[0][0]]}" if kinds else "."


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"

"""Colours of the report, for light and dark screens."""

from __future__ import annotations

from typing import get_args

from kera_hw.schedule.fpga.cells.cell import Paint

# (light, dark) of each kind of cell, then of everything else.
_COLOURS = {
    "logic": ("#1e9e5a", "#5bd39a"),
    "add": ("#2f6fed", "#7aa7ff"),
    "mul": ("#e8a100", "#ffcc4d"),
    "mux": ("#d6337c", "#ff7eb3"),
    "table": ("#8a3ffc", "#b48aff"),
    "state": ("#e8590c", "#ff9f66"),
    "input": ("#868e96", "#a0a8b0"),
    "ink": ("#1b1f24", "#e6e9ee"),
    "faint": ("#5d6673", "#98a2b0"),
    "line": ("#dfe3e8", "#343b45"),
    "paper": ("#ffffff", "#14181e"),
    "card": ("#f6f8fa", "#1b2129"),
    "good": ("#1a7f37", "#4ac26b"),
    "bad": ("#cf222e", "#ff7b72"),
    "wire": ("#aab2bd", "#5a6472"),
    "onbar": ("#ffffff", "#0d1117"),
}


def variables() -> str:
    """CSS custom properties, with a dark set where the reader's screen asks for it."""
    light = ";".join(f"--{name}:{pair[0]}" for name, pair in _COLOURS.items())
    dark = ";".join(f"--{name}:{pair[1]}" for name, pair in _COLOURS.items())
    return f":root{{{light};color-scheme:light dark}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"


def svg_style() -> str:
    """Style of the drawings: in the page once, and within a drawing that is a file of its own."""
    fills = "".join(f".k-{kind}{{fill:var(--{kind})}}" for kind in get_args(Paint))
    return (
        "svg text{font:11px ui-monospace,SFMono-Regular,Menlo,monospace;fill:var(--ink)}"
        "svg .faint{fill:var(--faint)}svg .on{fill:var(--onbar);font-weight:600}svg .small{font-size:9.5px}"
        "svg .head{font:600 12px ui-sans-serif,system-ui,sans-serif}"
        "svg .grid{stroke:var(--line)}svg .edge{stroke:var(--line);stroke-width:1.5}"
        "svg .wire{fill:none;stroke:var(--wire);stroke-width:1}svg .held{stroke-width:2;opacity:.45}"
        "svg .band{fill:var(--card)}svg .limit{stroke:var(--bad);stroke-dasharray:4 3}"
        "svg .box{stroke:var(--line)}svg .result{stroke:var(--ink);stroke-width:1.6}" + fills
    )


def standalone(svg: str) -> str:
    """A drawing with its style inside."""
    head, _, rest = svg.partition(">")
    background = '<rect width="100%" height="100%" style="fill:var(--paper)"/>'
    return f"{head}><style>{variables()}{svg_style()}</style>{background}{rest}"

"""K05xx: effects and capabilities."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0501", "undeclared effect",
     "What a function does besides giving its result is part of its signature: `fn f(..) -> T ! io`. "
     "Declare the effect, or leave out what causes it."),
    ("K0502", "effect without a lowering",
     "The language knows this effect and checks it, but no operation in the graph carries it out yet. Leave "
     "it out of functions that are built or run."),
    ("K0503", "effect under `&&` or `||`",
     "Both sides of a logical operator are evaluated, so an effect in one would not be skipped. Use `if`."),
    ("K0504", "unknown effect",
     "The effects are `io`, `fs.read`, `fs.write`, `net`, `time` and `rand`."),
    ("K0505", "too much printed for one item",
     "What a function prints for one item is kept until the item is done, in a record of bounded size: every "
     "loop counts with all its iterations. Print less often, or fewer numbers at a time."),
    ("K0506", "no export left",
     "Every `pub` function of the program has an effect that no operation in the graph carries out, so there "
     "is nothing to build or run. Move the effect into functions that are not exported, or leave it out."),
)

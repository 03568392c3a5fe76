"""K02xx: name resolution, modules, items."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0201", "unknown name",
     "Nothing of this name is in scope here: no local, parameter, item, import or built-in. Check the "
     "spelling, declare it, or import it with `use module::name;`."),
    ("K0202", "name declared twice",
     "One scope holds one item, field, parameter or size of a name. Rename one of the two."),
    ("K0203", "unknown module",
     "`use name::item;` reads the file name.kera beside this one, or a module of the standard library, and "
     "neither exists."),
    ("K0204", "module lacks the item",
     "The module was found but declares nothing of this name."),
    ("K0205", "wrong kind of name",
     "The name exists but is of another kind than the place wants: a type where a value belongs, a function "
     "that is not called, and the like."),
    ("K0206", "recursion",
     "A function may not reach itself, directly or through others: every program is a finite graph. Use a "
     "loop with a static bound."),
    ("K0207", "definition depends on itself",
     "The value of a constant, or the layout of a type, needs itself to be known. Break the cycle."),
    ("K0208", "unknown field",
     "The struct or tuple has no field of this name or position."),
    ("K0209", "unknown method",
     "The only methods are `bits`, `bit`, `at`, `clamped` and, on an instance of a stream, `step`; every "
     "other operation is a call: `f(x)`."),
    ("K0210", "run-time value in a constant",
     "Constants, sizes and loop bounds are evaluated at compile time, so they cannot use parameters, "
     "variables or states."),
    ("K0211", "assertion outside a test",
     "`assert` and `assert_eq` exist in `test` items only."),
    ("K0212", "item cannot be `pub`",
     "An exported function or stream has no compile-time sizes and no borrows among its parameters, because "
     "callers outside of Kera could not give them."),
    ("K0213", "misplaced `state`",
     "`state` declares what a stream keeps between items, so it belongs at the top level of a "
     "stream's body."),
    ("K0214", "constant cannot be evaluated",
     "The reference semantics refused the expression; the message says why."),
    ("K0215", "pattern like a constant",
     "A name in a pattern that is no constant binds whatever value comes, so a misspelt constant takes every "
     "value: `STRAT => 20` with a constant `START`. Correct the name, or write a variable in small letters."),
)

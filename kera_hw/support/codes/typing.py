"""K03xx: types, shapes, literals, index proofs."""
from __future__ import annotations

from kera_hw.support.codes.info import Table

TABLE: Table = (
    ("K0301", "index not proved in range",
     "Every index must be provably within its axis at compile time. Mask it, clamp it, test it, or use "
     "`a.at(i, else: v)` or `a.clamped(i)`."),
    ("K0302", "mismatched types",
     "Two types that must be the same are not, and nothing converts by itself. Convert with `as`, or change "
     "one of the declarations."),
    ("K0303", "literal out of range",
     "The type inferred for the literal cannot hold it. Use a wider type, or another value."),
    ("K0304", "operation not defined for the type",
     "The operator or built-in exists, but not for operands of this type."),
    ("K0305", "assignment to something immutable",
     "Only `let mut` variables, `mut` parameters, states and what a `&mut` parameter lends may be assigned."),
    ("K0306", "wrong arguments",
     "The call gives too few or too many arguments, or names one that the callee does not have."),
    ("K0307", "match not exhaustive",
     "Some value of the scrutinee has no arm. Add one for it, or end with `_ => ..`."),
    ("K0309", "size cannot be used",
     "A size, a count or an axis is an integer constant within its limits; the message says which."),
    ("K0310", "slice without a static size",
     "The two bounds of a slice must differ by a constant, for instance `a[i..i + 4]`."),
    ("K0311", "shapes do not agree",
     "Element-wise operations take tensors of one shape, or a scalar with a tensor; each tensor built-in "
     "has its own rule, which the message states."),
    ("K0312", "no such conversion",
     "`as` converts between integers, fixed point and floats, and from bool to an integer."),
    ("K0313", "unknown mode",
     "The position takes one of a few words, which the message lists."),
    ("K0314", "wrong compile-time arguments",
     "The arguments in `::<..>` do not fit what the callee declares."),
    ("K0315", "size cannot be inferred",
     "No argument decides this compile-time size. Give it: `f::<8>(..)`."),
    ("K0316", "loop range not usable",
     "A `for` runs over a static range; its variable's type must hold every value taken."),
    ("K0317", "misplaced borrow",
     "`&` and `&mut` lend a variable, or a part of one, to a parameter declared as a borrow; they exist "
     "nowhere else."),
    ("K0318", "not indexable, or without fields",
     "Only tensors have elements, and only structs and tuples have fields."),
    ("K0319", "impossible type",
     "Integers have 1 to 64 bits, `fix<W, F>` 1 to 64 bits with 0 to W fraction bits, tensors at least one "
     "axis, and memory spaces qualify tensors only."),
    ("K0320", "product too wide",
     "The product of two fixed-point numbers has the sum of their widths, which may not pass 64 bits. "
     "Convert the operands to narrower formats first."),
    ("K0321", "misplaced lambda",
     "A lambda may only be the last argument of `map`, `zip`, `reduce` or `scan`, and it may not assign to "
     "what it captures."),
    ("K0322", "shift amount not usable",
     "Amounts of shifts and rotates have an unsigned type, and cannot be negative."),
    ("K0323", "pattern does not fit",
     "The pattern cannot match values of this type."),
    ("K0324", "bits out of the value",
     "A bit slice lies within its value, the higher position first: `x.bits(7, 0)`."),
    ("K0325", "wrong fields in a struct literal",
     "A struct literal gives every field of the struct once."),
    ("K0326", "stream used wrongly",
     "A stream is applied to tensors of items, or held in `state f: name;` and advanced by `f.step(x)`."),
)

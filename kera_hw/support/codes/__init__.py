"""Every diagnostic code with its title and explanation, one module a range of codes.

Ranges: K00xx lexical, K01xx syntax, K02xx names, K03xx types and shapes, K04xx ownership,
K05xx effects, K06xx hardware, K07xx target limits, K08xx artefacts, K09xx runtime.
Lints are K025x, K035x and K0308.
"""
from kera_hw.support.codes import (
    artefacts,
    effects,
    hardware,
    lexical,
    lints,
    names,
    ownership,
    runtime,
    syntax,
    targets,
    typing,
)
from kera_hw.support.codes.info import CodeInfo

__all__ = ["CODES", "LINTS", "CodeInfo"]

_MODULES = (
    lexical, syntax, names, typing, lints, ownership, effects, hardware, targets, artefacts, runtime,
)

CODES: dict[str, CodeInfo] = {
    code: CodeInfo(title, explanation)
    for module in _MODULES
    for code, title, explanation in module.TABLE
}

#: Codes of warnings about what is most likely a mistake, which `--deny-warnings` turns into a failure.
LINTS: frozenset[str] = frozenset(code for code, _, _ in lints.TABLE)

"""Regions without parameters, run by the reference evaluator at compile time: constants and tests."""
from __future__ import annotations

from typing import Any

import numpy as np

from kera_hw.frontend.sema.constants.cost import RegionCost
from kera_hw.frontend.sema.lowering.core import FailedCallee, LowerError, nest_leaves
from kera_hw.frontend.sema.lowering.frame import Frame
from kera_hw.frontend.sema.lowering.whole import new_lowering
from kera_hw.frontend.sema.tree import hir
from kera_hw.graph.node import Region
from kera_hw.interp import run_region
from kera_hw.ops.spec import Array
from kera_hw.support import Diagnostic, KeraError, SourceFile

# In elements computed, of which the evaluator does about a thousand million a second; a node alone takes it
# about two microseconds.
_NODE_OVERHEAD = 2000
_MAX_WORK = 1 << 33


class RunError(Exception):
    """The reference evaluator does not compute something in the region yet."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


def run_closed(region: Region) -> list[Array]:
    """The results of a region without parameters, without a batch axis."""
    return [np.asarray(value)[0] for value in run_region(region, [], 1)]


def evaluate_constant(expr: hir.Expr, file: SourceFile) -> Any:
    """The value of a constant expression in the form of ``hir.Const.value``.

    ``expr`` refers to no variable from outside. Raises KeraError with one diagnostic (K0214, K0502)
    where the expression needs what cannot be evaluated at compile time, or too much work.
    """
    ctx = new_lowering()
    ctx.file = file
    frame = Frame(ctx.store)
    try:
        leaves = ctx.expr(frame, expr)
        region = frame.region(leaves)
        if RegionCost(_NODE_OVERHEAD).work(region) > _MAX_WORK:
            raise RunError("K0214", "This constant may take too many steps to be evaluated while compiling.")
        values = run_closed(region)
    except LowerError as error:
        raise KeraError([error.diagnostic]) from error
    except RunError as error:
        raise KeraError([Diagnostic(error.code, error.message, file, expr.span)]) from error
    except FailedCallee as error:
        raise KeraError(ctx.diagnostics[:1]) from error
    return nest_leaves(expr.type, list(values))

"""Reference meaning of structured control, on whole batches through the evaluator's context."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kera_hw.ops.rules import spread
from kera_hw.ops.spec import Array, EvalCall
from kera_hw.types import numpy_dtype, shape_of


def select(call: EvalCall) -> Sequence[Array]:
    chosen, a, b = spread(call.args)
    return (np.where(chosen, a, b),)


def call(call: EvalCall) -> Sequence[Array]:
    return call.context.run(call.attrs["region"], call.args)


def loop(call: EvalCall) -> Sequence[Array]:
    attrs = call.attrs
    region, carried, start, step = attrs["region"], attrs["carried"], attrs["start"], attrs["step"]
    values, captures = list(call.args[:carried]), call.args[carried:]
    dtype = numpy_dtype(attrs["index_type"])
    lanes = (call.context.batch,)
    for k in range(attrs["count"]):
        index = np.broadcast_to(np.array(start + k * step, dtype), lanes)
        values = call.context.run(region, [index, *values, *captures])
    return values


def _keep(active: Array, new: Array, old: Array) -> Array:
    """``new`` in the active lanes, ``old`` in the others."""
    return np.where(active.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def while_(call: EvalCall) -> Sequence[Array]:
    attrs = call.attrs
    body, cond, carried = attrs["body"], attrs["cond"], attrs["carried"]
    values, captures = list(call.args[:carried]), call.args[carried:]
    active: Array | None = None
    for _ in range(attrs["max"]):
        going = call.context.run(cond, [*values, *captures])[0]
        active = going if active is None else active & going
        if not active.any():
            break
        after = call.context.run(body, [*values, *captures])
        if active.all():
            values = after
        else:
            values = [_keep(active, new, old) for new, old in zip(after, values)]
    return values


def branch(call: EvalCall) -> Sequence[Array]:
    regions, captures = call.attrs["regions"], call.args[1:]
    selector = call.args[0]
    limit = len(regions) - 1
    if selector.dtype != np.bool_ and limit < np.iinfo(selector.dtype).max:
        selector = np.minimum(selector, selector.dtype.type(limit))
    taken = [int(number) for number in np.unique(selector)]
    values: list[Array] = []
    for number in taken:
        results = call.context.run(regions[number], captures)
        if values:
            lanes = selector == selector.dtype.type(number)
            values = [_keep(lanes, new, old) for new, old in zip(results, values)]
        else:
            values = list(results)
    return values


def map_(call: EvalCall) -> Sequence[Array]:
    """Elements fold into the batch axis: one run of the body on batch * size lanes."""
    attrs, batch = call.attrs, call.context.batch
    tensors, captures = call.args[: attrs["arity"]], call.args[attrs["arity"]:]
    size = tensors[0][0].size
    if size == 0:
        return [np.zeros((batch, *shape_of(kind)), numpy_dtype(kind)) for kind in call.types]
    lanes = batch * size
    elements = [tensor.reshape(lanes) for tensor in tensors]
    rows = [repeated(capture, size, lanes) for capture in captures]
    results = call.context.run(attrs["region"], [*elements, *rows], lanes)
    return [out.reshape(batch, *shape_of(kind)) for out, kind in zip(results, call.types)]


def repeated(capture: Array, size: int, lanes: int) -> Array:
    """Each row as often as ``size``."""
    if capture.strides[0] == 0 or capture.shape[0] == 1:  # one row in every lane stays one row
        return np.broadcast_to(capture[:1], (lanes, *capture.shape[1:]))
    return np.repeat(capture, size, axis=0)


def scan(call: EvalCall) -> Sequence[Array]:
    attrs = call.attrs
    region, carried, items = attrs["region"], attrs["carried"], attrs["items"]
    values = list(call.args[:carried])
    tensors, captures = call.args[carried : carried + items], call.args[carried + items:]
    outs = [
        np.zeros((call.context.batch, *shape_of(kind)), numpy_dtype(kind)) for kind in call.types[carried:]
    ]
    for k in range(attrs["length"]):
        results = call.context.run(region, [*values, *(tensor[:, k] for tensor in tensors), *captures])
        values = results[:carried]
        for out, row in zip(outs, results[carried:]):
            out[:, k] = row
    return [*values, *outs]

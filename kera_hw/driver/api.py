"""The Python interface: load a program, take a function of it on a target, call it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from kera_hw.driver.direct import fits
from kera_hw.driver.messages import shown
from kera_hw.driver.observing import Observed, observe
from kera_hw.driver.options import Executor, Requests, Stepper, TargetOptions, check_text
from kera_hw.driver.pace import cycles_text
from kera_hw.driver.plan_file import options_with
from kera_hw.driver.session import Loaded, compile_text, find_export, load_program
from kera_hw.driver.targets import hardware_device, make_executor, resolve_target
from kera_hw.graph import Export, Graph, probes_of, signature
from kera_hw.interp import flatten_value, unflatten_value
from kera_hw.interp.values import item_count
from kera_hw.support import Diagnostic, KeraError, SourceFile
from kera_hw.types import element_type, leaf_types, numpy_dtype, shape_of

if TYPE_CHECKING:
    from kera_hw.rtl.emit.component import Kernel


DirectCall = Callable[[Mapping[str, Any], Any], Any]
QuickCall = Callable[[Callable[..., Any]], Callable[..., Any] | None]


class Function:
    """One exported function on one target. Values travel as the project's API page says."""

    def __init__(self, export: Export, executor: Executor) -> None:
        self._fingerprint = Graph([export]).fingerprint
        self._export = export
        self._executor = executor
        self._takes_out = _takes_out(export)
        plain = _Call(export, executor)
        quick: QuickCall | None = getattr(executor, "quick", None) if self._takes_out else None
        self._call: Callable[..., Any] = (quick(plain) if quick is not None else None) or plain

    def __repr__(self) -> str:
        plan = self._executor.plan
        pace = f", {_pace(plan)}" if "latency_cycles" in plan else ""
        return f"<{signature(self._export)} on {plan['target']}{pace}>"

    @property
    def name(self) -> str:
        return self._export.name

    @property
    def fingerprint(self) -> str:
        """The hash of this function's own graph, which its builds carry; see also ``Program.fingerprint``."""
        return self._fingerprint

    @property
    def plan(self) -> Mapping[str, Any]:
        """What the target decided, as plain data."""
        return Facts(self._executor.plan)

    @property
    def __call__(self) -> Callable[..., Any]:
        """One item; a stream's item is the first after reset. Raises KeraError for values that do not fit.

        Arguments are given by name. ``out``, unless a parameter is called so, is an array for the result,
        which is written there.
        """
        return self._call

    def batch(self, /, **inputs: Any) -> Any:
        """Many items along the leading axis; for a stream they are one sequence from reset.

        ``out`` as in a call, with the axis of items.
        """
        out = inputs.pop("out", None) if self._takes_out else None
        items = _batch_size(self._export, inputs)
        if out is not None:
            _check_out(self._export, out, items)
        return _into(out, self._executor.run(inputs, items))


class _Call:
    """One item through Python, whatever the arguments are."""

    def __init__(self, export: Export, executor: Executor) -> None:
        self._export, self._executor = export, executor
        self._takes_out = _takes_out(export)
        self._direct: DirectCall | None = getattr(executor, "direct", None)

    def __call__(self, /, **inputs: Any) -> Any:
        out = inputs.pop("out", None) if self._takes_out else None
        if self._direct is not None:
            found = self._direct(inputs, out)
            if found is not NotImplemented:
                return found
        if out is not None:
            _check_out(self._export, out, None)
        return _into(out, _first_item(self._executor.run(_one_item(self._export, inputs), 1)))


def _takes_out(export: Export) -> bool:
    """Whether `out` says where results go: no parameter is called so."""
    return all(name != "out" for name, _ in export.params)


def _check_out(export: Export, out: object, items: int | None) -> None:
    """Raises KeraError (K0917) for what can't take the results."""
    kind = export.result
    if leaf_types(kind) != (kind,):
        message = f"`{export.name}` gives {kind}, which is no single array for `out`."
        raise KeraError([Diagnostic("K0917", message)])
    shape = (*(() if items is None else (items,)), *shape_of(kind))
    dtype = numpy_dtype(element_type(kind))
    if not shape or not fits(out, dtype, shape):
        wanted = f"an array of shape {shape} and dtype {dtype}, contiguous and writable"
        wanted = wanted if shape else "nothing, since the result is a scalar"
        message = f"`out` of `{export.name}` takes {wanted}, but got {_shown_array(out)}."
        raise KeraError([Diagnostic("K0917", message)])


class Stream:
    """One exported stream on one target, stepped item by item; what it keeps stays until ``reset``.

    It is a context manager: a simulated circuit has a process, which ends with ``close`` or with the object.
    """

    def __init__(self, export: Export, executor: Executor) -> None:
        self._export, self._executor = export, executor
        self._stepper: Stepper | None = executor.stepper()

    def __repr__(self) -> str:
        closed = ", closed" if self._stepper is None else ""
        return f"<{signature(self._export)} on {self._executor.plan['target']}, stepped{closed}>"

    @property
    def plan(self) -> Mapping[str, Any]:
        """What the target decided, as plain data."""
        return Facts(self._executor.plan)

    def step(self, /, **inputs: Any) -> Any:
        """The result of the next item. Raises KeraError for values that do not fit, or a tool's failure."""
        return _first_item(self._open().step(_one_item(self._export, inputs)))

    def reset(self) -> None:
        """Back to the state at first."""
        self._open().reset()

    def close(self) -> None:
        """Gives back what the target holds, such as the process of a simulation."""
        if self._stepper is not None:
            self._stepper.close()
            self._stepper = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Stepper:
        if self._stepper is None:
            raise KeraError([Diagnostic("K0916", f"The stream `{self._export.name}` was closed.")])
        return self._stepper


class Facts(dict[str, Any]):
    """A plan as plain data, whose text is one line."""

    def __repr__(self) -> str:
        if "latency_cycles" not in self:
            return f"<plan: {self['target']}>"
        estimate: Mapping[str, Any] = self["estimate"]
        costs = (f"{estimate[key]} {key.upper()}" for key in ("lut", "ff", "dsp", "bram") if estimate[key])
        where = f"{self['target']} at {self['clock_mhz']:g} MHz"
        return f"<plan of {self['function']}: {where}, {_pace(self)}, {', '.join(costs) or 'no cells'}>"


def _pace(plan: Mapping[str, Any]) -> str:
    latency, interval = cycles_text(plan["latency_cycles"]), cycles_text(plan["initiation_interval"])
    return f"latency {latency}, interval {interval}"


def run_inputs(
    export: Export, executor: Executor, values: Mapping[str, Any], batch: bool, wave: Path | None = None
) -> Any:
    """Runs one item, or a batch along the leading axis, and writes the waveform of that."""
    if wave is not None:
        from kera_hw.driver.waves import trace_items

        inputs = values if batch else _one_item(export, values)
        trace_items(executor, inputs, _batch_size(export, values) if batch else 1, wave)
    function = Function(export, executor)
    return function.batch(**values) if batch else function(**values)


def observe_inputs(
    graph: Graph, export: Export, target: str, options: TargetOptions, values: Mapping[str, Any], batch: bool
) -> tuple[Observed, Mapping[str, Any]]:
    """What one item, or a batch, shows beside its results; and the values with an axis of items."""
    if not probes_of(export):
        return Observed(), values
    items = values if batch else _one_item(export, values)
    count = _batch_size(export, values) if batch else 1
    return observe(graph, export, target, options, items, count), items


class Program:
    """A compiled program: its fingerprint, its graph, its exported functions."""

    def __init__(self, loaded: Loaded, graph: Graph) -> None:
        self._loaded = loaded
        self.graph = graph

    def __repr__(self) -> str:
        exports = "; ".join(map(signature, self.graph.exports)) or "no exports"
        return f"<Program {self._loaded.path}: {exports}>"

    @property
    def fingerprint(self) -> str:
        """``keg:sha3-256:<64 hex>``: the hash of the graph as lowered from source."""
        return self.graph.fingerprint

    @property
    def exports(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.graph.exports)

    def function(
        self,
        name: str,
        target: str | None = None,
        *,
        plan: str | os.PathLike[str] | None = None,
        **options: Unpack[Requests],
    ) -> Function:
        """The named export on a target; raises KeraError when there is none or the target refuses it.

        The options are those of `kera build`, by the names of ``driver.options.Requests``. ``target`` is
        "interp" (the default), "rtl", "cpu", "wasm", "ptx", "amdgcn", or names a device, as in
        "fpga:ecp5-25k": then, as with ``device``, it is the simulation of what is built for that device.
        ``plan`` is a file of `kera plan --save`, or the `plan.json` of a build: the circuit is that one.
        Raises TypeError for the name of an option that there is not.
        """
        export = self._export(name)
        return Function(export, self._executor(export, target, plan, options))

    def stream(
        self,
        name: str,
        target: str | None = None,
        *,
        plan: str | os.PathLike[str] | None = None,
        **options: Unpack[Requests],
    ) -> Stream:
        """The named export on a target, to be stepped item by item from reset; raises KeraError.

        Targets and options are those of ``function``. A circuit is simulated live, in a process of its own.
        """
        export = self._export(name)
        return Stream(export, self._executor(export, target, plan, options))

    def _executor(
        self, export: Export, target: str | None, plan: str | os.PathLike[str] | None, options: Requests
    ) -> Executor:
        _check_names(options)
        device = options.get("device")
        usual = "interp" if device is None and plan is None else "rtl"
        kind, part = resolve_target(usual if target is None else target, device)
        return make_executor(self.graph, export, kind, options_with(plan, **{**options, "device": part}))

    def component(
        self,
        name: str,
        *,
        target: str | None = None,
        cells: str = "auto",
        **options: Unpack[Requests],
    ) -> Kernel:
        """The named export as an Amaranth component with streams ``i`` and ``o``; raises KeraError.

        The options are those of ``function``. With the emitter ``amaranth``, the default here, it is Amaranth
        throughout and runs in ``amaranth.sim``; ``text`` makes it an instance of its Verilog, quicker for
        large kernels. ``cells`` are ``generic`` operators, those of the ``device`` that the plan counts on,
        or ``auto``: the device's in Verilog and where Amaranth builds for a platform, else generic. The ports
        have the shapes of their types; without a handshake ``i`` and ``o`` are structs, with ``in_valid`` and
        ``out_valid`` where state or an interval asks for them.
        """
        from kera_hw.driver.component import make_component

        _check_names(options)
        emitter = options.get("emitter")
        wanted = options_with(None, **{
            **options, "device": hardware_device(target, options.get("device")),
            "emitter": "amaranth" if emitter is None else emitter,
        })  # fmt: skip
        return make_component(self.graph, self._export(name), wanted, cells)

    def _export(self, name: str) -> Export:
        export = find_export(self._loaded, check_text("name of a function", name))
        if isinstance(export, Diagnostic):
            raise KeraError([export])
        return export


def load(path: str | os.PathLike[str]) -> Program:
    """Compiles a `.kera` file or reads a `.keg`. Raises KeraError with ``.diagnostics``."""
    try:
        place = Path(os.fspath(path))
    except TypeError:
        raise KeraError([Diagnostic("K0901", f"A path is text or a Path; {shown(path)} is not.")]) from None
    return _program(load_program(place))


def compile(source: str, path: str | os.PathLike[str] = "<text>") -> Program:
    """Compiles Kera text; modules are looked for beside ``path``. Raises KeraError with ``.diagnostics``."""
    file = SourceFile.from_text(check_text("program", source), os.fspath(path))
    return _program(compile_text(file, Path(file.path)))


def _program(loaded: Loaded) -> Program:
    if loaded.graph is None or loaded.has_errors:
        raise KeraError(loaded.diagnostics)
    return Program(loaded, loaded.graph)


def _check_names(options: Requests) -> None:
    """Raises TypeError for an option that there is not; a type checker says so too, where there is one."""
    for name in options:
        if name not in Requests.__annotations__:
            known = ", ".join(Requests.__annotations__)
            raise TypeError(f"there is no option {name!r}; there are {known}")


def _one_item(export: Export, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs with a leading axis of one item; names that are no parameters stay for the target to refuse."""
    lifted = dict(inputs)
    for name, kind in export.params:
        if name in inputs:
            lifted[name] = unflatten_value(kind, flatten_value(kind, inputs[name], None, name))
    return lifted


def _shown_array(value: object) -> str:
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, np.dtype[Any]]", value)
        flags = [word for word, there in (("not contiguous", array.flags.c_contiguous),
                                          ("read-only", array.flags.writeable)) if not there]
        return ", ".join([f"one of shape {array.shape} and dtype {array.dtype}", *flags])
    return f"a {type(value).__name__}"


def _into(out: Any, value: Any) -> Any:
    """The value, in an array that takes it if there is one."""
    if out is None:
        return value
    np.copyto(out, value)
    return out


def _first_item(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _first_item(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, tuple):
        return tuple(_first_item(item) for item in cast("tuple[Any, ...]", value))
    return value[0]


def _batch_size(export: Export, inputs: Mapping[str, Any]) -> int:
    """Items along the leading axis of every input. Raises KeraError (K0915) where that is not clear."""
    if not any(leaf_types(kind) for _, kind in export.params):
        message = f"`{export.name}` takes no values, so a batch of it has no size; call it instead."
        raise KeraError([Diagnostic("K0915", message)])
    # A parameter that holds nothing, such as (), says nothing about the number of items.
    holding = [(name, kind) for name, kind in export.params if name in inputs and leaf_types(kind)]
    counts = {name: item_count(kind, inputs[name]) for name, kind in holding}
    for name, count in counts.items():
        if count is None:
            raise KeraError([Diagnostic("K0915", f"`{name}` has no leading axis of items.")])
        first, expected = next(iter(counts.items()))
        if count != expected:
            message = f"`{name}` holds {count} items, but `{first}` {expected}."
            raise KeraError([Diagnostic("K0915", message)])
    return next(iter(counts.values()), None) or 0

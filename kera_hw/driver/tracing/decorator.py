"""`trace`: a Python function as a program, the same as one of a `.kera` file."""
from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from kera_hw.driver.api import Program
from kera_hw.driver.session import Loaded, compile_text
from kera_hw.driver.tracing.literals import array_text, kera_type
from kera_hw.driver.tracing.places import Files, Place
from kera_hw.driver.tracing.tracer import Tracer, during, taken_apart
from kera_hw.driver.tracing.values import StateValue, Traced, text_of, type_text
from kera_hw.graph import Graph, Origin
from kera_hw.support import Diagnostic, KeraError, SourceFile, deep_recursion
from kera_hw.types import Type

_ELSEWHERE = "() = ()"
"""What stands for a constant that is given by its value."""


class TracedProgram(Program):
    """A program that was written in Python."""

    def __init__(
        self, loaded: Loaded, graph: Graph, source: Callable[[], str], function: Callable[..., Any]
    ) -> None:
        super().__init__(loaded, graph)
        self._source = source
        self.__wrapped__ = function
        self.__doc__ = function.__doc__

    @cached_property
    def source(self) -> str:
        """The program as Kera text, with the lines that it comes from."""
        return self._source()


def trace(*types: Any, **named: Any) -> Any:
    """A Python function as a program with one export of its name.

        @kera_hw.trace
        def scaled(x: Annotated[Any, "[f32; 1024]"], a: np.float32):
            return x * a

    The function is called once, with values that stand for its parameters; loops and conditions of Python
    are done by then. Parameters have types by annotations: text in Kera's notation, alone or in
    ``Annotated``, or a NumPy dtype. Or they are given here, in order or by name:
    ``@kera_hw.trace("[f32; 1024]", a="f32")``. With `kera_hw.state` it is a stream. Raises KeraError with
    places in the Python file.
    """
    if types and callable(types[0]) and not isinstance(types[0], type):
        return _program(types[0], types[1:], named)

    def decorate(function: Callable[..., Any]) -> TracedProgram:
        return _program(function, types, named)

    return decorate


def _program(function: Callable[..., Any], types: Sequence[Any], named: Mapping[str, Any]) -> TracedProgram:
    tracer = Tracer(Files())
    if not inspect.isfunction(inspect.unwrap(getattr(function, "__func__", function))):
        tracer.fail("What is traced is a function written in Python; put a `lambda` around others.")
    code = inspect.unwrap(function).__code__
    place = tracer.files.function(code)
    params, wanted = _signature(tracer, function, types, named, place)
    values = {name: Traced(tracer, name, kind) for name, kind in params.items()}
    for name, kind in params.items():
        tracer.declare(name, str(kind), place)
    with deep_recursion():
        result = during(tracer, _by_name(function), values)
        tracer.done = False
        text = _text(tracer, _name(function), params, wanted, result, place)
    tracer.done = True
    lines, numbers = taken_apart(text)
    path = Path(code.co_filename)
    given = {name: (tracer.typed(name, place).type, array) for name, array in tracer.arrays.items()}
    loaded = compile_text(SourceFile.from_text("\n".join(lines), f"{path}.kera"), path, given)
    at = _Places(tracer, numbers, place)
    wrong = [item for item in loaded.diagnostics if item.is_error]
    graph = loaded.graph
    if graph is None or wrong or not graph.exports:
        raise KeraError([at.diagnostic(item) for item in wrong or loaded.diagnostics])
    moved = at.graph(graph)
    return TracedProgram(Loaded(path, moved, None, ()), moved, lambda: at.shown(lines), function)


def _by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with parameters by name alone, those as well that it takes by position only."""
    positions = [
        name for name, param in inspect.signature(function).parameters.items()
        if param.kind is param.POSITIONAL_ONLY
    ]

    def call(**values: Any) -> Any:
        first = [values.pop(name) for name in positions]
        return function(*first, **values)

    return call if positions else function


def _name(function: Callable[..., Any]) -> str:
    """The export's name; a `lambda` has none."""
    return function.__name__ if function.__name__.isidentifier() else "traced"


# ---------------------------------------------------------------- the signature


def _signature(
    tracer: Tracer, function: Callable[..., Any], types: Sequence[Any], named: Mapping[str, Any],
    place: Place,
) -> tuple[dict[str, Type], Type | None]:
    """Parameters with their types, and the result's if it is written. Raises KeraError (K0919)."""
    params = inspect.signature(function).parameters
    written = {name: _evaluated(function, kind) for name, kind in inspect.get_annotations(function).items()}
    annotations = {name: kind for name, kind in written.items() if kind not in (Any, object, Traced)}
    if len(types) > len(params) or set(named) - set(params):
        extra = ", ".join([*map(str, types[len(params):]), *(name for name in named if name not in params)])
        tracer.fail(f"`{_name(function)}` has no parameter for {extra}.", place, "K0919")
    given = {**annotations, **dict(zip(params, types)), **named}
    found: dict[str, Type] = {}
    for name, param in params.items():
        if param.kind in (param.VAR_POSITIONAL, param.VAR_KEYWORD):
            tracer.fail(f"`{param}` stands for any number of parameters; write each.", place, "K0919")
        if name not in given:
            how = f"Annotate it, `{name}: \"i16\"`, or give its type, `@kera_hw.trace({name}=\"i16\")`."
            tracer.fail(f"The parameter `{name}` has no type.", place, "K0919", (how,))
        found[name] = _written(tracer, given[name], place)
    result = annotations.get("return")
    return found, None if result is None else _written(tracer, result, place)


def _written(tracer: Tracer, kind: Any, place: Place) -> Type:
    """The type of an annotation, or of what was given to `trace`."""
    if get_origin(kind) is Annotated:
        kind = next((item for item in get_args(kind)[1:] if isinstance(item, (str, Type))), kind)
    return tracer.type_written(type_text(tracer, kind), place)


def _evaluated(function: Callable[..., Any], text: Any) -> Any:
    """An annotation, which `from __future__ import annotations` leaves as its text. A type of Kera's notation
    stays text: it is none of Python's expressions, or one that has no value."""
    if not isinstance(text, str):
        return text
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return text
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        return tree.value
    known: dict[str, Any] = getattr(function, "__globals__", {})
    if isinstance(tree, (ast.Attribute, ast.Subscript)) or (isinstance(tree, ast.Name) and tree.id in known):
        try:
            return eval(text, known)  # what Python itself does with annotations
        except (NameError, TypeError, AttributeError):
            return text
    return text


# ---------------------------------------------------------------- the text


def _text(
    tracer: Tracer, name: str, params: Mapping[str, Type], wanted: Type | None, result: Any, place: Place,
) -> str:
    """The whole program, each line with the mark of its place."""
    if isinstance(result, StateValue):
        result = result.value
    if result is None:
        tracer.fail(f"`{name}` returns nothing.", place)
    value, local = text_of(tracer, result), tracer.unused("t")
    checked = value if wanted is None else f"{{ let {local}: {wanted} = {value}; {local} }}"
    kind = tracer.typed(checked, place).type
    word = "stream" if tracer.states else "fn"
    head = f"pub {word} {name}({', '.join(f'{p}: {k}' for p, k in params.items())}) -> {kind} {{"
    lines = [
        f"const {called}: {text};{tracer.mark(tracer.names[called].place)}"
        if called not in tracer.arrays else f"const {called}: {_ELSEWHERE};"
        for text, called in tracer.constants.items()
    ]
    lines.append(head + tracer.mark(place))
    lines += [f"    state {s.name}: {s.type} = {s.initial};{tracer.mark(s.place)}" for s in tracer.states]
    lines += [f"    {line}" for made in tracer.lines for line in made.split("\n")]
    for state in tracer.states:
        if state.value != state.name:
            lines.append(f"    {state.name} = {state.value};{tracer.mark(state.place)}")
    return "\n".join([*lines, f"    {value}{tracer.mark(place)}", f"}}{tracer.mark(place)}", ""])


class _Places:
    """Places in the text as places in Python."""

    def __init__(self, tracer: Tracer, numbers: Sequence[int | None], whole: Place) -> None:
        self._tracer, self._numbers, self._whole = tracer, numbers, whole

    def of_line(self, line: int) -> Place:
        number = self._numbers[line - 1] if line <= len(self._numbers) else None
        return self._whole if number is None else self._tracer.places[number]

    def diagnostic(self, item: Diagnostic) -> Diagnostic:
        known = item.file is not None and item.span is not None
        line = item.file.line_column(item.span.start)[0] if known and item.file and item.span else 0
        return self._tracer.moved(item, self.of_line(line) if line else self._whole)

    def graph(self, graph: Graph) -> Graph:
        """The graph with the origins of its nodes in Python."""
        origins = {node: self._origin(origin) for node, origin in graph.origins.items()}
        scopes = dict.fromkeys(graph.scopes, (self._whole.origin,))
        exports = [
            replace(
                export, places=tuple(self._whole.origin for _ in export.places),
                state=tuple(
                    var if var.origin is None else replace(var, origin=self._origin(var.origin))
                    for var in export.state
                ),
            )
            for export in graph.exports
        ]
        return Graph(exports, origins, scopes)

    def _origin(self, origin: Origin) -> Origin:
        """A node's places in Python; names that tracing gave are none."""
        name = origin.name if origin.name is not None and not re.match(r"v\d+(\.|$)", origin.name) else None
        first, *others = (self.of_line(place.line).origin for place in origin.places)
        found = replace(first, name=name)
        for other in others:
            found = found.joined(other)
        return found

    def shown(self, lines: Sequence[str]) -> str:
        """The text with all constants, and the lines of Python beside it."""
        for name, array in self._tracer.arrays.items():
            kind = kera_type(array.dtype)
            assert kind is not None
            whole = f"const {name}: {self._tracer.names[name].type} = {array_text(array, kind)};"
            lines = [whole if line == f"const {name}: {_ELSEWHERE};" else line for line in lines]
        numbers = [None if number is None else self._tracer.places[number] for number in self._numbers]
        return "\n".join(
            line if place is None else f"{line}  // {Path(place.file.path).name}:{place.line}"
            for line, place in zip(lines, numbers)
        )

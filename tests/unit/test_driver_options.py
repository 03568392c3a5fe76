"""Options of the hardware path: one place checks them, for the command line and for Python."""

from __future__ import annotations

import math
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kera_hw
from kera_hw.driver import options
from kera_hw.driver.build import build
from kera_hw.driver.options import Requests, TargetOptions, clock_of_text
from kera_hw.driver.session import load_program
from kera_hw.driver.verify import verify_export
from kera_hw.rtl.emit.handshake import MOST_DATA_BITS
from tests.unit.cli_support import Kera

SOURCE = "pub fn f(a: i8, b: i8) -> i8 { a + b }\npub fn g(a: i8) -> i8 { -a }\n"
CODES = {"K0605", "K0902", "K0903", "K0908"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("options") / "p.kera"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def kera(capsys: pytest.CaptureFixture[str]) -> Kera:
    return Kera(capsys)


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**400), 10**400),
    st.floats(),
    st.text(max_size=60),
    st.binary(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(), st.integers(), max_size=1),
    st.sampled_from(
        [
            1e300,
            -1.0,
            math.nan,
            math.inf,
            -math.inf,
            10**5000,
            Fraction(10**400),
            Fraction(1, 3),
            Decimal("NaN"),
            1j,
            np.float32("nan"),
            np.int8(-1),
            np.bool_(True),
            np.array(5),
            np.array([1, 2]),
            object,
            object(),
            {1},
            ...,
        ]
    ),
)
"""What a program might pass by mistake, with right values among it."""


def codes_of(call: Any) -> set[str]:
    """The codes of the KeraError that a call ends in, if any; another exception fails the test."""
    try:
        call()
    except kera_hw.KeraError as fault:
        assert all(len(item.message) < 300 and item.message.isprintable() for item in fault.diagnostics)
        return {item.code for item in fault.diagnostics}
    return set()


FIELDS = (
    "device", "clock_mhz", "latency", "interface", "interval", "dsp", "emitter", "lanes", "lut", "bram",
    "sites", "units",
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FIELDS), ANYTHING)
def test_options_are_plain_and_in_range_or_refused(field: str, value: object) -> None:
    if codes_of(lambda: TargetOptions(**{field: value})):  # type: ignore[arg-type]
        return
    held = getattr(TargetOptions(**{field: value}), field)  # type: ignore[arg-type]
    if field in ("device", "interface", "emitter"):
        assert type(held) is str
    elif field == "clock_mhz":
        assert held is None or (type(held) is float and 1 <= held <= 1000)
    else:
        assert held is None or (type(held) is int and 0 <= held <= 100_000_000)


@pytest.mark.filterwarnings("ignore:.*created but never used")
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([*FIELDS, "target", "name"]), ANYTHING, st.booleans())
def test_the_python_interface_raises_nothing_but_kera_errors(
    source: Path, field: str, value: object, component: bool
) -> None:
    program = kera_hw.load(source)
    # A latency or an interval in range is a circuit of that many stages: not what this test is about.
    if field in ("latency", "interval") and isinstance(value, int) and not isinstance(value, bool):
        value = -abs(value)
    call: dict[str, Any] = {"name": "f"}
    call[field] = value
    if component and field != "target":
        assert codes_of(lambda: program.component(**call)) <= CODES
    else:
        on_rtl: dict[str, Any] = {"target": "rtl", **call}
        assert codes_of(lambda: program.function(**on_rtl)) <= CODES
        assert codes_of(lambda: program.function(**call)) <= CODES


@settings(max_examples=60, deadline=None)
@given(ANYTHING)
def test_paths_seeds_and_counts_of_any_kind(value: object) -> None:
    if not isinstance(value, str):
        assert codes_of(lambda: kera_hw.load(value)) == {"K0901"}  # type: ignore[arg-type]
    for check in (options.PLACEMENT_SEED, options.VECTOR_SEED, options.VECTORS, options.TIME_LIMIT_S):
        assert codes_of(lambda check=check: check.check(value)) <= {"K0908"}


def test_builds_and_comparisons_check_what_they_are_given(source: Path, tmp_path: Path) -> None:
    loaded = load_program(source)
    assert loaded.graph is not None
    graph, export = loaded.graph, loaded.graph.exports[0]
    for seed in (-1, 2**31, 1.5, True, None):
        with pytest.raises(kera_hw.KeraError, match="K0908"):
            build(loaded, graph, export, TargetOptions(), tmp_path / "o", True, seed, print)  # type: ignore[arg-type]
    assert not (tmp_path / "o").exists()
    for vectors, seed in ((0, 1), (1, -1), ("3", 1), (10**8, 1)):
        with pytest.raises(kera_hw.KeraError, match="K0908"):
            verify_export(graph, export, ["interp", "rtl"], vectors, seed, [], TargetOptions())  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    made = TargetOptions("fpga:ecp5-25k", np.float32(120.5), np.int64(3), "none", np.uint8(2), np.int16(0))  # type: ignore[arg-type]
    assert made == TargetOptions("ecp5-25k", 120.5, 3, "none", 2, 0)
    assert TargetOptions(clock_mhz=Fraction(241, 2)).clock_mhz == 120.5  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"clock_mhz": math.nan},
            "The clock (`--clock`) is a number of MHz from 1 to 1,000, such as 150; nan is not.",
        ),
        (
            {"clock_mhz": -1},
            "The clock (`--clock`) is a number of MHz from 1 to 1,000, such as 150; -1 is not.",
        ),
        (
            {"clock_mhz": 0},
            "The clock (`--clock`) is a number of MHz from 1 to 1,000, such as 150; 0 is not.",
        ),
        (
            {"latency": 70_000},
            "The latency (`--latency`) is a whole number of cycles from 1 to 65,530, such as 12; "
            "70,000 is not.",
        ),
        (
            {"interval": True},
            "The interval (`--ii`) is a whole number of cycles from 1 to 16,777,216, such as 4; "
            "True is not.",
        ),
        (
            {"dsp": 1.5},
            "The limit of multipliers (`--dsp`) is a whole number of blocks from 0 to 1,000,000, such as 8; "
            "1.5 is not.",
        ),
        ({"interface": "axi"}, "The interface is one of stream, none, axis, axi-lite; `axi` is not."),
        ({"emitter": None}, "The emitter is one of text, amaranth; None is not."),
    ],
)
def test_messages_say_what_an_option_takes(given: dict[str, Any], message: str) -> None:
    with pytest.raises(kera_hw.KeraError) as refused:
        TargetOptions(**given)
    assert [(item.code, item.message) for item in refused.value.diagnostics] == [("K0908", message)]


FLAGS = ("--clock", "--latency", "--ii", "--dsp", "--interface", "--emitter", "--target", "--seed", "--emit")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(FLAGS),
    st.one_of(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30),
        st.integers(-(10**30), 0).map(str),
        st.integers(10**7, 10**30).map(str),
        st.sampled_from(
            ["nan", "inf", "-1", "0", "1e300", "-0", "70000", "1_0", "0x10", "150 parsec", "١٥٠"]
        ),
    ),
)
def test_the_command_line_ends_with_a_code(
    source: Path, kera: Kera, tmp_path: Path, flag: str, value: str
) -> None:
    outcome = kera(
        "build", source, "--fn", "g", "-o", tmp_path / "o", "--emit", "verilog", f"{flag}={value}", "--json"
    )
    if outcome.status != 0:
        assert outcome.status == 2, outcome.out
        assert {item["code"] for item in outcome.json["diagnostics"]} <= {"K0605", "K0903", "K0905", "K0908"}


@pytest.mark.parametrize("arguments", [
    ("plan", "--clock=nan"), ("plan", "--clock=0"), ("plan", "--clock=-1"), ("plan", "--latency=70000"),
    ("plan", "--ii=0"), ("plan", "--dsp=-1"), ("verify", "--vectors=0"), ("verify", "--vectors=10000001"),
    ("verify", "--seed=-1"), ("verify", "--formal", "--time-limit=nan"), ("run", "--clock=2GHz"),
    ("inspect", "--plan", "--clock=0.5MHz"),
])  # fmt: skip
def test_every_command_checks_alike(source: Path, kera: Kera, arguments: tuple[str, ...]) -> None:
    command, *rest = arguments
    outcome = kera(command, source, "--fn", "g", *rest)
    assert outcome.status == 2 and "error[K0908]" in outcome.err, outcome


def test_a_frequency_is_a_number_with_or_without_its_unit() -> None:
    assert [clock_of_text(text) for text in (None, "150", "150MHz", "0.15GHz", "150000 kHz", " 2e8")[:5]] == [
        None,
        150.0,
        150.0,
        150.0,
        150.0,
    ]
    assert codes_of(lambda: clock_of_text("2e8")) == {"K0908"}


def test_the_longest_pipeline_is_one_that_can_be_written() -> None:
    assert options.LATENCY.most <= MOST_DATA_BITS


def test_python_takes_every_option_and_no_other(tmp_path: Path) -> None:
    assert [*Requests.__annotations__, "plan"] == [field.name for field in fields(TargetOptions)]
    source = tmp_path / "a.kera"
    source.write_text("pub fn f(a: u8) -> u8 { a }\n")
    with pytest.raises(TypeError, match="no option 'clock'; there are device, clock_mhz, "):
        kera_hw.load(source).function("f", clock=150)  # type: ignore[call-arg]

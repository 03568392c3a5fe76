"""Files of constants: what is read, and that a file which is not of the form is not read at all."""
from __future__ import annotations

import re
import subprocess
import sys

import pytest

from kera_hw.support.tables import SUFFIX, Tables, read_tables
from tests.tidy.repo import ROOT

TEXT = """# two tables
A integer 1 3
0 -1f
ffffffffffffffff
B real 2 1  # a column each
3ff0000000000000 fff0000000000000
"""


def test_what_is_read() -> None:
    tables = Tables(TEXT, "here")
    assert tables.integers("A") == (0, -31, (1 << 64) - 1)
    assert tables.real_columns("B") == ((1.0,), (float("-inf"),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A integer 1 2\n0", "A ends before its 1 times 2 numbers"),
        ("A integer 1\n", "A does not say its size"),
        ("A integer 1 1\n0\nA integer 1 1\n0", "two tables are called A"),
        ("A whole 1 1\n0", "a table of 1 times 1 whole"),
        ("A integer 0 1\n0", "a table of 0 times 1 integer"),
        ("A integer 1 1\n0x1", "holds `0x1`, which is no integer number"),
        ("A integer 1 1\n+1", "holds `+1`"),
        ("A integer 1 1\n1_0", "holds `1_0`"),
        ("A real 1 1\n3ff", "holds `3ff`, which is no real number"),
        ("A real 1 1\n-ff0000000000000", "which is no real number"),
        ("A integer 1 1\n0\n1", "1 does not say its size"),
    ],
)
def test_what_is_no_file_of_tables(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        Tables(text, "here")


@pytest.mark.parametrize("name", ["B", "C"])
def test_a_table_of_another_kind_or_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"here has no integer table {name}"):
        Tables(TEXT, "here").integers(name)


def test_every_file_belongs_to_a_module_and_is_packed() -> None:
    found = sorted((ROOT / "kera_hw").rglob(f"*{SUFFIX}"))
    assert found and f'"**/*{SUFFIX}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for path in found:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        assert path.with_suffix(".py").exists()
        read_tables(module)


def test_the_command_line_starts_without_them() -> None:
    script = "import sys, kera_hw.cli.main; print(list(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "coefficients" not in done.stdout and "support.tables" not in done.stdout

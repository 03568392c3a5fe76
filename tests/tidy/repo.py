"""What the house-rule tests share: which files the project consists of."""
from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SKIPPED_DIRECTORIES = {
    ".git", ".venv", "build", "dist", "node_modules", "__pycache__", ".pytest_cache", ".ruff_cache",
    ".hypothesis", ".import_linter_cache",
}


@cache
def project_files() -> tuple[Path, ...]:
    """Every file of the project, new ones included, ignored ones not; absolute, sorted."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, check=True, capture_output=True, timeout=60,
        ).stdout.decode()
        paths = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive without git
        paths = list(_walk())
    return tuple(sorted(path for path in paths if path.is_file()))


def _walk() -> list[Path]:
    found: list[Path] = []
    for directory, names, files in os.walk(ROOT):
        names[:] = [n for n in names if n not in _SKIPPED_DIRECTORIES and not n.endswith(".egg-info")]
        found += [Path(directory) / name for name in files]
    return found


def files_with_suffix(suffix: str) -> list[Path]:
    return [path for path in project_files() if path.suffix == suffix]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()

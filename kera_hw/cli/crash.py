"""Reports of our own bugs: short on the terminal, whole in a file, never a traceback in a user's face."""

from __future__ import annotations

import json
import platform
import tempfile
import traceback
from typing import Any


def describe(fault: Exception, arguments: list[str]) -> dict[str, Any]:
    """What somebody needs to find the bug, as plain data."""
    from kera_hw import __version__

    frames = traceback.extract_tb(fault.__traceback__)
    last = frames[-1] if frames else None
    first_line = (str(fault).splitlines() or [""])[0]
    return {
        "error": f"{type(fault).__name__}: {first_line}".rstrip(": "),
        "place": f"{last.filename}:{last.lineno} in {last.name}" if last else "an unknown place",
        "versions": f"kera {__version__}, Python {platform.python_version()}, {platform.platform()}",
        "arguments": arguments,
        "traceback": traceback.format_exception(fault),
    }


def save(report: dict[str, Any]) -> str | None:
    """Writes the report into the temporary directory; its path, or None if that is not possible."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="kera-bug-", suffix=".json", delete=False, encoding="utf-8"
        ) as file:
            json.dump(report, file, indent=1)
            return file.name
    except OSError:
        return None

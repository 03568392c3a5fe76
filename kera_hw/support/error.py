"""The exception that carries diagnostics, shown with all that they say where nobody catches it."""
from __future__ import annotations

from collections.abc import Iterable

from kera_hw.support.diagnostic import Diagnostic
from kera_hw.support.render import render_diagnostic


class KeraError(Exception):
    """Raised at the Python API's edge when the user's input is at fault; carries ``.diagnostics``."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics: list[Diagnostic] = list(diagnostics)
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in self.diagnostics) or "unknown error")

    def __getattr__(self, name: str) -> list[str]:
        """Python asks for ``__notes__`` to show an error that nobody catches: places, reasons and fixes.

        Made then, since planning raises many an error that no one is to see.
        """
        if name != "__notes__":
            raise AttributeError(name)
        texts = [render_diagnostic(item) for item in self.diagnostics]
        if len(texts) == 1:
            texts = texts[0].splitlines()[1:]  # its first line is the message
        self.__notes__ = texts
        return texts

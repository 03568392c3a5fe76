"""Runs command lines in this process and hands back what a shell would see."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from kera_hw.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """Exit status and both streams of one command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on stdout; anything else there is a failure."""
        return json.loads(self.out)


class Kera:
    """Calls the command line; ``capsys`` catches what it prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Outcome:
        self._capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        caught = self._capsys.readouterr()
        assert "Traceback" not in caught.err + caught.out
        return Outcome(status, caught.out, caught.err)

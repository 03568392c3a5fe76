"""Which test holds which sentence of the pages that define the language.

A sentence that says how a program behaves is held in one of three ways: by a test in ``<page>.kera`` whose
label is the sentence; by programs in ``<page>.toml`` that are refused with a code; by a test of the suite
named there. What only introduces, or points elsewhere, is listed as such.
"""
from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Claims:
    """Of one page: sentences with the refused programs and their codes, with tests, and without either."""

    refused: dict[str, list[tuple[str, str]]]
    elsewhere: dict[str, str]
    introductions: list[str]


def claims_of(page: str) -> Claims:
    data = tomllib.loads((HERE / f"{page}.toml").read_text(encoding="utf-8"))
    refused = {row["sentence"]: [(text, code) for text, code in row["programs"]] for row in data["refused"]}
    elsewhere = {row["sentence"]: row["test"] for row in data["elsewhere"]}
    return Claims(refused, elsewhere, data["introductions"])

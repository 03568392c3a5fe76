"""The grammar: one mixin a file, put together here."""
from __future__ import annotations

from kera_hw.frontend.parser.grammar.expressions import Expressions
from kera_hw.frontend.parser.grammar.items import Items
from kera_hw.frontend.parser.grammar.patterns import Patterns
from kera_hw.frontend.parser.grammar.primaries import Primaries
from kera_hw.frontend.parser.grammar.statements import Statements
from kera_hw.frontend.parser.grammar.types import Types

__all__ = ["Grammar"]


class Grammar(Items, Statements, Expressions, Primaries, Patterns, Types):
    """The complete parser; ``source_unit`` is its entry."""

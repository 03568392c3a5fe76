"""From bytes to a syntax tree that reproduces them; any byte string parses.

``tokenize`` gives the tokens, ``parse`` the tree behind its typed view, ``format_source`` the file in the
one spacing programs have, each with its diagnostics.
"""
from __future__ import annotations

from kera_hw.frontend.parser.depth import MAX_TREE_DEPTH, limit_depth
from kera_hw.frontend.parser.events import build_tree
from kera_hw.frontend.parser.format import format_tree
from kera_hw.frontend.parser.grammar import Grammar
from kera_hw.frontend.parser.lexer import Token, tokenize
from kera_hw.frontend.syntax import ast
from kera_hw.frontend.syntax.red import SyntaxNode
from kera_hw.support import Diagnostic, SourceFile, deep_recursion

__all__ = ["MAX_TREE_DEPTH", "Token", "format_source", "parse", "tokenize"]


def parse(file: SourceFile) -> tuple[ast.SourceUnit, list[Diagnostic]]:
    """The tree of a file and all lexical and syntax diagnostics, in source order.

    Never fails: ``unit.node.data == file.data`` for every byte string, and no tree is deeper than
    MAX_TREE_DEPTH nodes (use ``support.deep_recursion`` to walk it recursively).
    """
    tokens, diagnostics = tokenize(file)
    grammar = Grammar(file, tokens)
    with deep_recursion():
        grammar.source_unit()
    green, found = build_tree(grammar.events, tokens, file.data)
    green, too_deep = limit_depth(green, file)
    if not any(item.code == "K0012" for item in diagnostics):
        diagnostics += found + too_deep
    diagnostics.sort(key=_place)
    return ast.SourceUnit(SyntaxNode(green)), diagnostics


def format_source(file: SourceFile) -> tuple[bytes | None, list[Diagnostic]]:
    """The file in the one spacing programs have; None, with the diagnostics, if it has mistakes.

    Tokens and comments stay as they are and formatting the result changes nothing.
    """
    unit, diagnostics = parse(file)
    if any(diagnostic.is_error for diagnostic in diagnostics):
        return None, diagnostics
    return format_tree(unit.node), diagnostics


def _place(diagnostic: Diagnostic) -> int:
    return diagnostic.span.start if diagnostic.span else 0

"""The formatter: one spacing for every program; line breaks stay where their author put them.

Only white space changes: each token and comment of the input is in the output, in order. Lines are
indented by four columns a bracket, and by four more when they continue a statement.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.frontend.parser.lexer import tokenize
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.frontend.syntax.red import SyntaxNode, SyntaxToken
from kera_hw.support import SourceFile

K = SyntaxKind

_INDENT = 4
_LINE_COMMENTS = frozenset((K.LINE_COMMENT, K.DOC_COMMENT))
_COMMENTS = _LINE_COMMENTS | {K.BLOCK_COMMENT}
_OPENERS = frozenset((K.L_PAREN, K.L_BRACKET, K.L_BRACE))
_CLOSERS = frozenset((K.R_PAREN, K.R_BRACKET, K.R_BRACE))
_TIGHT_BOTH = frozenset((K.DOT, K.COLON_COLON))
_RANGE_OPS = frozenset((K.DOT_DOT, K.DOT_DOT_EQ))
_TIGHT_BEFORE = _TIGHT_BOTH | {K.COMMA, K.SEMICOLON, K.COLON, K.R_PAREN, K.R_BRACKET}
_TIGHT_AFTER = _TIGHT_BOTH | {K.L_PAREN, K.L_BRACKET}
_PREFIX_NODES = frozenset((K.UNARY_EXPR, K.BORROW_EXPR, K.REF_TYPE, K.LITERAL))
_PREFIX_TOKENS = frozenset((K.MINUS, K.BANG, K.AMP))
_ANGLE_NODES = frozenset((K.GENERIC_ARG_LIST, K.SIZE_PARAM_LIST))
#: A new line after one of these begins something; after any other token it continues it.
_BEGINNERS = _OPENERS | {K.COMMA, K.SEMICOLON, K.R_BRACE}


@dataclass(slots=True)
class _Piece:
    """A token or comment, and how many line breaks stood before it."""

    kind: SyntaxKind
    parent: SyntaxKind
    text: bytes
    breaks: int
    first_of_item: bool
    first: bool  # within its node
    last: bool


def format_tree(root: SyntaxNode) -> bytes:
    """The formatted text of a tree that has no syntax errors."""
    writer = _Writer(_pieces(root))
    writer.write()
    return b"".join(writer.parts)


def _pieces(root: SyntaxNode) -> list[_Piece]:
    item_starts = {item.start for item in root.children}
    pieces: list[_Piece] = []
    breaks = 0
    for leaf in root.leaves():
        if leaf.kind is K.WHITESPACE:
            breaks += leaf.data.count(b"\n")
            continue
        pieces.append(_piece(leaf, breaks, leaf.start in item_starts))
        breaks = 0
    return pieces


def _piece(leaf: SyntaxToken, breaks: int, first_of_item: bool) -> _Piece:
    text = leaf.data.rstrip() if leaf.kind in _LINE_COMMENTS else leaf.data
    siblings = leaf.parent.elements
    return _Piece(
        leaf.kind, leaf.parent.kind, text, breaks, first_of_item,
        first=siblings[0] is leaf, last=siblings[-1] is leaf,
    )


class _Writer:
    def __init__(self, pieces: list[_Piece]) -> None:
        self.pieces = pieces
        self.parts: list[bytes] = []
        self.line_indent = 0
        self.open: list[int] = []  # indentation of the line each open bracket stands on
        self.last_code: SyntaxKind | None = None  # last token that is not a comment

    def write(self) -> None:
        for index, piece in enumerate(self.pieces):
            if index:
                self._separate(index)
            self.parts.append(piece.text)
            if piece.kind in _OPENERS:
                self.open.append(self.line_indent)
            elif piece.kind in _CLOSERS and self.open:
                self.open.pop()
            if piece.kind not in _COMMENTS:
                self.last_code = piece.kind
        if self.pieces:
            self.parts.append(b"\n")

    def _separate(self, index: int) -> None:
        before, piece = self.pieces[index - 1], self.pieces[index]
        breaks = self._breaks(before, piece)
        if not breaks:
            if self._spaced(index):
                self.parts.append(b" ")
            return
        if piece.kind in _CLOSERS and self.open:
            indent = self.open[-1]
        else:
            indent = self.open[-1] + _INDENT if self.open else 0
            if self.last_code is not None and self.last_code not in _BEGINNERS:
                indent += _INDENT
        self.line_indent = indent
        self.parts.append(b"\n" * breaks + b" " * indent)

    def _breaks(self, before: _Piece, piece: _Piece) -> int:
        """Line breaks between two pieces: the author's, at most one empty line, none at brackets."""
        if before.kind in _LINE_COMMENTS or piece.first_of_item:
            breaks = max(1, piece.breaks)
        elif piece.kind in (K.COMMA, K.SEMICOLON) and before.kind not in _COMMENTS:
            return 0
        else:
            breaks = piece.breaks
        if before.kind in _OPENERS or piece.kind in _CLOSERS:
            return min(1, breaks)
        return min(2, breaks)

    def _spaced(self, index: int) -> bool:
        before, piece = self.pieces[index - 1], self.pieces[index]
        if before.kind in _COMMENTS or piece.kind in _COMMENTS:
            return True
        if before.kind is K.L_BRACE and piece.kind is K.R_BRACE:
            return False
        if self._must_part(index):
            return True
        return not (_tight_after(before) or _tight_before(piece))

    def _must_part(self, index: int) -> bool:
        """Whether the two tokens would read differently if they touched."""
        before, piece = self.pieces[index - 1], self.pieces[index]
        if (before.kind, piece.kind) in ((K.AMP, K.AMP), (K.PIPE, K.PIPE)):
            return True
        if before.kind not in (K.INT, K.FLOAT) or piece.kind not in _TIGHT_BOTH | _RANGE_OPS:
            return False
        after_dot = b"." if index > 1 and self.pieces[index - 2].kind is K.DOT else b""
        touching = piece.kind is K.DOT and index + 1 < len(self.pieces)
        following = self.pieces[index + 1].text if touching else b""
        joined = after_dot + before.text + piece.text + following
        tokens, _ = tokenize(SourceFile("", joined))
        ends = {token.end for token in tokens}
        first = len(after_dot) + len(before.text)
        return not (first in ends and first + len(piece.text) in ends)


def _tight_before(piece: _Piece) -> bool:
    kind, parent = piece.kind, piece.parent
    if kind in _TIGHT_BEFORE:
        return True
    if kind in _RANGE_OPS or (kind is K.PIPE and parent is K.LAMBDA_EXPR):
        return not piece.first
    if kind is K.L_PAREN:
        return parent in (K.ARG_LIST, K.PARAM_LIST)
    if kind is K.L_BRACKET:
        return parent is K.INDEX_EXPR
    return kind in (K.LT, K.GT) and parent in _ANGLE_NODES


def _tight_after(before: _Piece) -> bool:
    kind, parent = before.kind, before.parent
    if kind in _TIGHT_AFTER:
        return True
    if kind in _RANGE_OPS:
        return not before.last
    if kind is K.PIPE:
        return parent is K.LAMBDA_EXPR and before.first
    if kind in _PREFIX_TOKENS:
        return parent in _PREFIX_NODES
    return kind is K.LT and parent in _ANGLE_NODES

"""The flat list of events a parse is, and the green tree built from it.

The grammar never touches trees: it emits Start, Token, Finish and Error events over the tokens that are
not trivia, and the builder puts the trivia back.
"""
from __future__ import annotations

from dataclasses import dataclass

from kera_hw.frontend.parser.lexer import Token
from kera_hw.frontend.syntax.green import GreenCache, GreenElement, GreenNode
from kera_hw.frontend.syntax.kinds import LAST_TRIVIA, SyntaxKind
from kera_hw.support import Diagnostic

K = SyntaxKind


@dataclass(slots=True)
class Start:
    """Open a node. ``kind`` None: the node was abandoned. ``parent``: index of a Start that opens around
    this one although it comes later in the list (`a` is read before `+` shows that it is an operand)."""

    kind: SyntaxKind | None = None
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """Take ``count`` adjacent lexer tokens as one token of ``kind`` (the Token event)."""

    kind: SyntaxKind
    count: int = 1


@dataclass(frozen=True, slots=True)
class Finish:
    """Close the innermost open node."""


@dataclass(frozen=True, slots=True)
class Error:
    """A mistake found at this point of the parse."""

    diagnostic: Diagnostic


Event = Start | Advance | Finish | Error
FINISH = Finish()
ADVANCE = {kind: Advance(kind) for kind in K}
"""By one token, of each kind."""

_DOCUMENTED = frozenset((
    K.FN_ITEM, K.STREAM_ITEM, K.CONST_ITEM, K.STRUCT_ITEM, K.TYPE_ALIAS_ITEM, K.USE_ITEM, K.TEST_ITEM,
    K.STRUCT_FIELD,
))


def build_tree(events: list[Event], tokens: list[Token], data: bytes) -> tuple[GreenNode, list[Diagnostic]]:
    """The green tree of a parse and its diagnostics. ``tokens`` is the lexer's full list."""
    builder = _Builder(tokens, data)
    diagnostics: list[Diagnostic] = []
    for index, event in enumerate(events):
        if isinstance(event, Advance):
            builder.token(event)
        elif isinstance(event, Finish):
            builder.finish()
        elif isinstance(event, Error):
            diagnostics.append(event.diagnostic)
        elif event.parent is not None:
            for kind in _opened_at(events, index):
                builder.start(kind)
        elif event.kind is not None:
            builder.start(event.kind)
    return builder.root(), diagnostics


def _opened_at(events: list[Event], index: int) -> list[SyntaxKind]:
    """Kinds of the nodes that open at a Start event, outermost first."""
    kinds: list[SyntaxKind] = []
    current: int | None = index
    while current is not None:
        event = events[current]
        assert isinstance(event, Start)
        if event.kind is not None:
            kinds.append(event.kind)
        following = event.parent
        # Each Start opens once: visited ones are blanked so that the main loop passes over them.
        event.kind, event.parent = None, None
        current = following
    kinds.reverse()
    return kinds


class _Builder:
    """Keeps trivia out of nodes' edges: it is placed before a node opens and after the node closes."""

    def __init__(self, tokens: list[Token], data: bytes) -> None:
        self.tokens = tokens
        self.kinds = [*[token.kind for token in tokens], K.END]
        self.data = data
        self.position = 0
        self.cache = GreenCache()
        self.stack: list[tuple[SyntaxKind, list[GreenElement]]] = []
        self.finished: GreenNode | None = None

    def start(self, kind: SyntaxKind) -> None:
        if self.stack and self.kinds[self.position] <= LAST_TRIVIA:
            self.trivia(keep_docs=kind in _DOCUMENTED)
        self.stack.append((kind, []))

    def token(self, event: Advance) -> None:
        tokens, position = self.tokens, self.position
        if self.kinds[position] <= LAST_TRIVIA:
            self.trivia()
            position = self.position
        after = position + event.count
        text = self.data[tokens[position].start:tokens[after - 1].end]
        self.stack[-1][1].append(self.cache.token(event.kind, text))
        self.position = after

    def finish(self) -> None:
        if len(self.stack) == 1:
            self.trivia()
        kind, children = self.stack.pop()
        node = self.cache.node(kind, children)
        if self.stack:
            self.stack[-1][1].append(node)
        else:
            self.finished = node

    def root(self) -> GreenNode:
        assert self.finished is not None and self.position == len(self.tokens)
        return self.finished

    def trivia(self, keep_docs: bool = False) -> None:
        """Take trivia into the open node; with ``keep_docs`` leave the doc comments that belong to what
        follows, and everything after the first of them."""
        tokens, kinds, end = self.tokens, self.kinds, self.position
        while kinds[end] <= LAST_TRIVIA:
            end += 1
        if end == self.position:
            return
        if keep_docs:
            end = self.docs_start(end)
        for token in tokens[self.position:end]:
            self.push(token.kind, token.start, token.end)
        self.position = end

    def docs_start(self, end: int) -> int:
        """Index of the first doc comment in the unbroken run before ``end``; ``end`` without one."""
        start = end
        for index in range(end - 1, self.position - 1, -1):
            token = self.tokens[index]
            if token.kind is K.DOC_COMMENT:
                start = index
            elif token.kind is K.WHITESPACE:
                if self.data.count(b"\n", token.start, token.end) > 1:
                    break
            elif token.kind is not K.LINE_COMMENT:
                break
        return start

    def push(self, kind: SyntaxKind, start: int, end: int) -> None:
        self.stack[-1][1].append(self.cache.token(kind, self.data[start:end]))

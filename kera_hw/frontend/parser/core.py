"""The parser's machine: a cursor over the significant tokens, events, errors and recovery.

The grammar is written as mixins of ParserCore, one a file; each loop either consumes a token or stops,
and what nests is counted, so no input can hang the parser or exhaust the stack.
"""
from __future__ import annotations

from collections.abc import Callable

from kera_hw.frontend.parser.events import ADVANCE, FINISH, Advance, Error, Event, Start
from kera_hw.frontend.parser.lexer import Token
from kera_hw.frontend.parser.lexer_checks import is_closed
from kera_hw.frontend.parser.rules import Completed, Marker, Rules
from kera_hw.frontend.syntax.kinds import LAST_TRIVIA, SPELLING, SyntaxKind
from kera_hw.support import Diagnostic, Fix, Label, SourceFile, Span

K = SyntaxKind

#: How deep constructs may nest; each level costs the parser a handful of Python frames.
MAX_NESTING = 200

OPENERS = frozenset((K.L_PAREN, K.L_BRACKET, K.L_BRACE))
CLOSERS = frozenset((K.R_PAREN, K.R_BRACKET, K.R_BRACE))

LITERAL_START = frozenset((K.INT, K.FLOAT, K.STRING, K.TRUE_KW, K.FALSE_KW))
EXPR_START = LITERAL_START | {
    K.IDENT, K.L_PAREN, K.L_BRACKET, K.L_BRACE, K.MINUS, K.BANG, K.AMP, K.PIPE, K.PIPE_PIPE, K.IF_KW,
    K.MATCH_KW,
}
BLOCK_LIKE_START = frozenset((K.IF_KW, K.MATCH_KW, K.L_BRACE))
BLOCK_LIKE = frozenset((K.IF_EXPR, K.MATCH_EXPR, K.BLOCK))
#: After an element, these can only begin another one: the comma is missing.
ELEMENT_START = LITERAL_START | {K.IDENT, K.IF_KW, K.MATCH_KW}
STMT_KEYWORDS = frozenset((K.LET_KW, K.FOR_KW, K.WHILE_KW, K.RETURN_KW, K.CONST_KW))
ITEM_KEYWORDS = frozenset((
    K.FN_KW, K.STREAM_KW, K.CONST_KW, K.STRUCT_KW, K.TYPE_KW, K.USE_KW, K.PUB_KW,
))
#: What never stands in a body at the left margin.
_BODY_NEVER = ITEM_KEYWORDS - {K.CONST_KW}
LIST_STOP = STMT_KEYWORDS | ITEM_KEYWORDS | {K.COMMA, K.SEMICOLON, K.ARROW, K.L_BRACE}


class _Level:
    """One level of nesting, entered and left; the same for all, since a parser counts and no more."""

    __slots__ = ("_parser",)

    def __init__(self, parser: ParserCore) -> None:
        self._parser = parser

    def __enter__(self) -> bool:
        parser = self._parser
        parser.nesting += 1
        if parser.nesting > MAX_NESTING:
            parser.give_up()
        return not parser.gave_up

    def __exit__(self, *_: object) -> None:
        self._parser.nesting -= 1


class ParserCore(Rules):
    """Cursor, events and errors. ``pos`` indexes the significant tokens."""

    def __init__(self, file: SourceFile, tokens: list[Token]) -> None:
        self.file = file
        self.data = file.data
        self.events: list[Event] = []
        self.pos = 0
        self.nesting = 0
        self._level = _Level(self)
        self.gave_up = False
        self.error_pos = -1
        self.reported_line = range(0)
        self.expected_closers: list[SyntaxKind] = []
        self.had_foreign = False  # a habit of another language has been reported
        self.in_ternary = False
        self.rewritten: dict[int, str] = {}  # what to write for conditionals read so far, by first token
        self.tokens: list[Token] = []
        self.kinds: list[SyntaxKind] = []
        self.new_line: list[bool] = []  # a line break stands before the token
        self.near_bad: list[bool] = []  # bytes the lexer has reported stand before the token
        self._split(tokens)

    def _split(self, tokens: list[Token]) -> None:
        data, new_line, near_bad = self.data, True, False
        for token in (*tokens, Token(K.END, len(data), len(data))):
            kind, start, end = token
            if kind <= LAST_TRIVIA:
                new_line = new_line or data.find(b"\n", start, end) >= 0
                near_bad = near_bad or kind is K.BAD_BYTES
                continue
            self.tokens.append(token)
            self.kinds.append(kind)
            self.new_line.append(new_line)
            self.near_bad.append(near_bad)
            new_line = False
            near_bad = kind is K.STRING and not is_closed(data[start:end].decode("utf-8", "replace"))

    # -- looking ------------------------------------------------------------------------------

    @property
    def current(self) -> SyntaxKind:
        return self.kinds[self.pos]

    def nth(self, ahead: int) -> SyntaxKind:
        index = self.pos + ahead
        return self.kinds[index] if index < len(self.kinds) else K.END

    def at(self, kind: SyntaxKind) -> bool:
        return self.kinds[self.pos] is kind

    def word(self, ahead: int = 0) -> bytes:
        """The bytes of a token, for contextual words."""
        index = self.pos + ahead
        if index >= len(self.tokens):
            return b""
        token = self.tokens[index]
        return self.data[token.start:token.end]

    def at_word(self, text: bytes) -> bool:
        return self.at(K.IDENT) and self.word() == text

    def at_test(self) -> bool:
        """Whether a `test "name"` item begins here; `test` is a name elsewhere."""
        return self.at_word(b"test") and self.nth(1) is K.STRING

    def at_next_item(self) -> bool:
        """An item at the left margin: the block before it lacks its brace."""
        if self.current not in _BODY_NEVER and not self.at_test():
            return False
        start = self.tokens[self.pos].start
        return start == 0 or self.data[start - 1:start] == b"\n"

    def adjacent(self, ahead: int) -> bool:
        """Whether the token ``ahead`` and the one after it touch."""
        index = self.pos + ahead
        return index + 1 < len(self.tokens) and self.tokens[index].end == self.tokens[index + 1].start

    # -- consuming ----------------------------------------------------------------------------

    def bump(self, kind: SyntaxKind | None = None, count: int = 1) -> None:
        """Take the current token, under another kind if given, with the ``count`` - 1 after it."""
        here = self.kinds[self.pos]
        if here is not K.END:
            self.events.append(Advance(kind or here, count) if count > 1 else ADVANCE[kind or here])
            self.pos += count

    def eat(self, kind: SyntaxKind) -> bool:
        if self.kinds[self.pos] is kind:
            self.bump()
            return True
        return False

    def annotation(self, after: str) -> None:
        """`: type`, or a report that it is missing."""
        if self.eat(K.COLON):
            self.type_()
            return
        self.missing("`:` and a type", after)
        if self.current in (K.IDENT, K.L_BRACKET, K.AMP):
            self.type_()

    def expect(self, kind: SyntaxKind, after: str = "") -> bool:
        """Take the token, or report that it is missing right after the token before."""
        if self.eat(kind):
            return True
        self.missing(f"`{SPELLING[kind]}`", after, SPELLING[kind])
        return False

    def name(self, what: str) -> bool:
        """Take an identifier, or report that ``what`` is missing."""
        if self.eat(K.IDENT):
            return True
        if self.current.is_keyword and not self.new_line[self.pos]:
            text = SPELLING[self.current]
            self.error("K0112", f"`{text}` is a reserved word and cannot be {what}.")
            self.bump_error()
            return True  # it stands where the name would, so what follows can be read
        self.unexpected(what)
        return False

    # -- nodes --------------------------------------------------------------------------------

    def open(self) -> Marker:
        self.events.append(Start())
        return Marker(len(self.events) - 1, self.pos)

    def close(self, marker: Marker, kind: SyntaxKind) -> Completed:
        event = self.events[marker.start]
        assert isinstance(event, Start)
        event.kind = kind
        self.events.append(FINISH)
        return Completed(marker.start, kind, marker.first_token)

    def open_around(self, completed: Completed) -> Marker:
        """Open a node that will have ``completed`` as its first child."""
        event = self.events[completed.start]
        assert isinstance(event, Start)
        # The chain of parents is walked from the innermost, so hang the new one on its outermost end.
        self.events.append(Start())
        event.parent = len(self.events) - 1
        return Marker(len(self.events) - 1, completed.first_token)

    # -- errors -------------------------------------------------------------------------------

    def span_here(self) -> Span:
        token = self.tokens[self.pos]
        return Span(token.start, token.end)

    def span_since(self, first_token: int) -> Span:
        """From a token to the last one consumed."""
        last = max(first_token, self.pos - 1)
        return Span(self.tokens[first_token].start, self.tokens[last].end)

    def span_after_previous(self) -> Span:
        end = self.tokens[self.pos - 1].end if self.pos else 0
        return Span(end, end)

    def found(self) -> str:
        """The current token, for messages."""
        if self.at(K.END):
            return "the end of the file"
        text = self.word().decode("utf-8", "replace")
        return f"`{text}`" if len(text) <= 40 else f"`{text[:37]}...`"

    def error(
        self, code: str, message: str, span: Span | None = None, labels: tuple[Label, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        """Report, unless this place has been reported already, by us or by the lexer.

        What follows a mistake on its line is nearly always its echo, so a line has one report.
        """
        if self.gave_up or self.error_pos == self.pos:
            return
        self.error_pos = self.pos
        place = span or self.span_here()
        if self.near_bad[self.pos] or place.start in self.reported_line:
            return
        end = self.data.find(b"\n", place.start)
        self.reported_line = range(
            self.data.rfind(b"\n", 0, place.start) + 1, (len(self.data) if end < 0 else end) + 1
        )
        self.events.append(Error(Diagnostic(code, message, self.file, place, labels, fix=fix)))

    def unexpected(self, what: str) -> None:
        self.error("K0101", f"Expected {what}, found {self.found()}.")

    def missing(self, what: str, after: str = "", insert: str | None = None) -> None:
        """Report at the end of the token before, which is where the reader would add what is missing."""
        place = self.span_after_previous()
        fix = Fix(f"insert {what}", place, insert, safe=self.new_line[self.pos]) if insert else None
        tail = f" after {after}" if after else ""
        self.error("K0101", f"Expected {what}{tail}, found {self.found()}.", place, fix=fix)

    def unclosed(self, opener: int, closer: SyntaxKind, separator: str = "") -> None:
        """Report a missing closing bracket: at the opener if the file ends, else here."""
        token = self.tokens[opener]
        text, close = self.data[token.start:token.end].decode(), SPELLING[closer]
        span = Span(token.start, token.end)
        if self.at(K.END) or (closer is not K.R_BRACE and self.current in CLOSERS):
            self.error("K0102", f"This `{text}` is never closed.", span)
            return
        wanted = f"{separator} or `{close}`" if separator else f"`{close}`"
        label = (Label(span, f"this `{text}` is open here"),)
        self.error("K0101", f"Expected {wanted}, found {self.found()}.", labels=label)

    # -- recovery -----------------------------------------------------------------------------

    def bump_error(self) -> None:
        """Put the current token into an ERROR node."""
        marker = self.open()
        self.bump()
        self.close(marker, K.ERROR)

    def skip_balanced(self) -> None:
        """Take a token; with a bracket, take all up to its partner."""
        depth = 0
        while not self.at(K.END):
            if self.current in OPENERS:
                depth += 1
            elif self.current in CLOSERS:
                depth -= 1
            self.bump()
            if depth <= 0:
                return

    def at_expected_closer(self) -> bool:
        """Whether the current token closes something that is open."""
        return self.current in CLOSERS and self.current in self.expected_closers

    def skip_until(self, stop: frozenset[SyntaxKind]) -> None:
        """Put tokens into one ERROR node up to a stop, a closer of something open, or the end."""
        if self.at(K.END) or self.current in stop or self.at_expected_closer():
            return
        marker = self.open()
        while not (self.at(K.END) or self.current in stop or self.at_expected_closer()):
            self.skip_balanced()
        self.close(marker, K.ERROR)

    def comma_list(self, closer: SyntaxKind, element: Callable[[], None]) -> int:
        """`(a, b,)` and its like, from opener to closer; a missing comma or closer costs one report.

        Gives the number of elements, one more where the last has a comma after it: 1 is a parenthesis.
        """
        opener = self.pos
        count, complete = 1, True
        self.bump()
        self.expected_closers.append(closer)
        while not (self.at(closer) or self.at(K.END)):
            before = self.pos
            element()
            if self.eat(K.COMMA):
                count += 1
                continue
            if self.at(closer):
                break
            self.unclosed(opener, closer, "`,`")
            if self.pos > before and self.current in ELEMENT_START:
                count += 1
                continue  # as though the comma were there
            self.skip_until(LIST_STOP)
            if not self.eat(K.COMMA):
                complete = self.at(closer)
                break
        count -= self.pos == opener + 1
        self.expected_closers.pop()
        if not self.eat(closer) and complete:
            self.unclosed(opener, closer)
        return count

    def nested(self) -> _Level:
        """Counts a level within; gives False, and ends the parse, when there are too many."""
        return self._level

    def give_up(self) -> None:
        """Report excessive nesting and take the rest of the file as one ERROR."""
        if self.gave_up:
            return
        self.error_pos, self.reported_line = -1, range(0)
        self.error("K0103", f"This is nested more than {MAX_NESTING} levels deep.")
        self.gave_up = True
        marker = self.open()
        while not self.at(K.END):
            self.bump()
        self.close(marker, K.ERROR)

"""Bytes to tokens: every byte of the file belongs to exactly one token, whatever the bytes are.

`>` is always a token of its own, so that `fix<8, 4>>` needs no second thoughts in types; the parser
glues `>=`, `>>` and `>>=` in expressions. After a single `.` a number is its digits alone, so `t.0.1`
is two fields and not a float.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from kera_hw.frontend.parser.lexer_checks import check_number, check_string, check_text, describe_character
from kera_hw.frontend.parser.lexer_foreign import ForeignToken, hash_mark, quoted, sized_number, tick, tilde
from kera_hw.frontend.syntax.ast_atoms import NUMBER
from kera_hw.frontend.syntax.kinds import KEYWORDS, LAST_TRIVIA, PUNCTUATION, SyntaxKind
from kera_hw.support import Diagnostic, Fix, SourceFile, Span

K = SyntaxKind


class Token(NamedTuple):
    """A kind and the half-open byte range it covers."""

    kind: SyntaxKind
    start: int
    end: int


_NUMBER = re.compile(NUMBER.pattern.encode())
_SINGLE = {b">=", b">>", b">>="}
_PUNCTUATION = b"|".join(
    re.escape(text) for text in sorted(PUNCTUATION, key=len, reverse=True) if text not in _SINGLE
)
_MASTER = re.compile(
    rb"""(?P<space>[ \t\n\r\v\f]+)
    |(?P<word>[A-Za-z_\x80-\xff][A-Za-z0-9_\x80-\xff]*)
    |(?P<sized>(?:[0-9][0-9_]*)?'[sS]?[bBoOdDhH][0-9a-fA-FxXzZ_?]+(?![0-9A-Za-z_']))
    |(?P<number>[0-9])
    |(?P<quoted>'(?:[^'\\\n]|\\[^\n])*'|')
    |(?P<hash>\#(?:[\[!][^\n]*)?)
    |(?P<tick>`[A-Za-z_]*)
    |(?P<tilde>~)
    |(?P<doc>///(?!/)[^\n]*)
    |(?P<line>//[^\n]*)
    |(?P<block>/\*)
    |(?P<string>"(?:[^"\\\n]|\\[^\n])*(?:"|\\?))
    |(?P<punctuation>""" + _PUNCTUATION.replace(b"#", rb"\#") + rb""")
    |(?P<bad>[^ \t\n\r\v\fA-Za-z_\x80-\xff0-9"/(){}\[\],;:.=!<>+\-*%&|^?@'`~\#]+)""",
    re.VERBOSE,
)
#: What other languages have and this one has not: code, message, help and replacement by the text.
_FOREIGN: dict[str | None, Callable[[str], ForeignToken]] = {
    "sized": sized_number, "quoted": quoted, "hash": hash_mark, "tick": tick, "tilde": tilde,
}
_BLOCK_EDGE = re.compile(rb"/\*|\*/")
_DIGITS = re.compile(rb"[0-9]+")
_WORD_TAIL = re.compile(rb"[A-Za-z0-9_]+")
_HEX_POINT = re.compile(rb"\.[0-9][0-9a-fA-F_]*")
_FLOAT_SUFFIXES = {b"f16", b"bf16", b"f32", b"f64"}
_BOM = b"\xef\xbb\xbf"


def tokenize(file: SourceFile) -> tuple[list[Token], list[Diagnostic]]:
    """All tokens of a file, trivia included, and what is wrong with them (K00xx)."""
    lexer = _Lexer(file)
    lexer.run()
    return lexer.tokens, lexer.diagnostics


class _Lexer:
    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.data = file.data
        self.tokens: list[Token] = []
        self.diagnostics: list[Diagnostic] = []
        self.after_dot = False
        self.is_utf8 = _is_utf8(file.data)

    def run(self) -> None:
        not_text = check_text(self.data)
        if not_text is not None:
            # Said once for the file: no place in it is more wrong than another.
            self.diagnostics.append(Diagnostic("K0012", f"{self.file.path} {not_text}.", self.file))
            self.push(K.BAD_BYTES, 0, len(self.data))
            return
        position = 0
        if self.data.startswith(_BOM):
            position = self.push(K.WHITESPACE, 0, len(_BOM))
        data, end = self.data, len(self.data)
        match_at, append = _MASTER.match, self.tokens.append
        while position < end:
            match = match_at(data, position)
            assert match is not None, f"no token at byte {position}"
            group, stop = match.lastgroup, match.end()
            if group == "space":
                append(Token(K.WHITESPACE, position, stop))
                position = stop
            elif group == "punctuation":
                kind = PUNCTUATION[match[0]]
                append(Token(kind, position, stop))
                position = stop
                self.after_dot = kind is K.DOT
            elif group == "word":
                position = self.word(position, stop, match[0])
            elif group == "number":
                position = self.number(position)
            else:
                position = self.rare(group, position, stop)

    def push(self, kind: SyntaxKind, start: int, end: int) -> int:
        self.tokens.append(Token(kind, start, end))
        if kind > LAST_TRIVIA:
            self.after_dot = False
        return end

    def report(self, code: str, start: int, end: int, message: str, fix: Fix | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, self.file, Span(start, end), fix=fix))

    def word(self, start: int, end: int, text: bytes) -> int:
        if text.isascii():
            kind = K.UNDERSCORE if text == b"_" else KEYWORDS.get(text, K.IDENT)
            return self.push(kind, start, end)
        if not _is_utf8(text):
            self.report("K0001", start, end, "These bytes are not UTF-8 text.")
            return self.push(K.BAD_BYTES, start, end)
        name = text.decode()
        if name.isidentifier():
            self.report("K0002", start, end, f"The name `{name}` has letters outside ASCII.")
            return self.push(K.IDENT, start, end)
        self.report("K0003", start, end, describe_character(name))
        return self.push(K.BAD_BYTES, start, end)

    def number(self, start: int) -> int:
        if self.after_dot:
            match = _DIGITS.match(self.data, start)
            assert match is not None
            return self.push(K.INT, start, match.end())
        match = _NUMBER.match(self.data, start)
        assert match is not None
        end = match.end()
        tail = _WORD_TAIL.match(self.data, end)
        suffix = tail[0] if tail else b""
        # In `1_u8` and `1_` the underscore ends the digits.
        digits = match[0].rstrip(b"_")
        is_float = match["hexfloat"] is not None or (
            match["dec"] is not None
            and (not digits.replace(b"_", b"").isdigit() or suffix in _FLOAT_SUFFIXES)
        )
        end += len(suffix)
        if match["hex"] is not None and not suffix:
            point = _HEX_POINT.match(self.data, end)
            if point is not None:
                end = point.end()
                text = self.data[start:end].decode()
                self.report("K0010", start, end, f"The hexadecimal float `{text}` has no exponent.")
                return self.push(K.FLOAT, start, end)
        problem = check_number(digits.decode(), suffix.decode(), is_float)
        if problem is not None:
            self.report(problem[0], start, end, problem[1])
        return self.push(K.FLOAT if is_float else K.INT, start, end)

    def rare(self, group: str | None, start: int, end: int) -> int:
        if group == "block":
            return self.block_comment(start, end)
        if group == "string":
            return self.string(start, end)
        if group == "hash":
            end = self.hash_end(start, end)
        if group in _FOREIGN:
            text = self.data[start:end].decode("utf-8", "replace")
            code, message, advice, replacement = _FOREIGN[group](text)
            fix = Fix(advice)
            if replacement is not None:
                fix = Fix(f"write `{replacement}`", Span(start, end), replacement)
            self.report(code, start, end, message, fix)
            return self.push(K.BAD_BYTES, start, end)
        if group == "bad":
            self.report("K0003", start, end, describe_character(self.data[start:end].decode()))
            return self.push(K.BAD_BYTES, start, end)
        self.check_utf8(start, end, "comment")
        return self.push(K.DOC_COMMENT if group == "doc" else K.LINE_COMMENT, start, end)

    def hash_end(self, start: int, end: int) -> int:
        """A `#` that begins its line takes all of it: a comment, an attribute or a directive."""
        line = self.data.rfind(b"\n", 0, start) + 1
        if self.data[line:start].strip():
            return end
        stop = self.data.find(b"\n", start)
        return len(self.data) if stop < 0 else stop

    def block_comment(self, start: int, position: int) -> int:
        depth = 1
        while depth:
            edge = _BLOCK_EDGE.search(self.data, position)
            if edge is None:
                self.report("K0004", start, start + 2, "This block comment is never closed.")
                position = len(self.data)
                break
            depth += 1 if edge[0] == b"/*" else -1
            position = edge.end()
        self.check_utf8(start, position, "comment")
        return self.push(K.BLOCK_COMMENT, start, position)

    def string(self, start: int, end: int) -> int:
        text = self.data[start:end]
        if self.check_utf8(start, end, "string"):
            for code, first, last, message in check_string(text):
                self.report(code, start + first, start + last, message)
        return self.push(K.STRING, start, end)

    def check_utf8(self, start: int, end: int, what: str) -> bool:
        """Whether the range is UTF-8; reports it where not."""
        if self.is_utf8 or _is_utf8(self.data[start:end]):
            return True
        self.report("K0001", start, end, f"This {what} holds bytes that are not UTF-8 text.")
        return False


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True

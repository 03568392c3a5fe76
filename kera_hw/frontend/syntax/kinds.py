"""Every kind of token, trivia and node a Kera syntax tree can hold."""
from __future__ import annotations

from enum import IntEnum, auto


class SyntaxKind(IntEnum):
    """An IntEnum because the lexer and parser compare and hash kinds once per token."""

    # Trivia: no meaning to the grammar, kept so that the tree is the file.
    WHITESPACE = auto()
    LINE_COMMENT = auto()
    BLOCK_COMMENT = auto()
    DOC_COMMENT = auto()
    BAD_BYTES = auto()  # bytes no token starts with; the lexer has reported them, the grammar skips them

    # Tokens with a spelling of their own.
    IDENT = auto()
    INT = auto()
    FLOAT = auto()
    STRING = auto()
    UNDERSCORE = auto()

    # Reserved words.
    FN_KW = auto()
    STREAM_KW = auto()
    STRUCT_KW = auto()
    CONST_KW = auto()
    TYPE_KW = auto()
    USE_KW = auto()
    PUB_KW = auto()
    LET_KW = auto()
    MUT_KW = auto()
    IF_KW = auto()
    ELSE_KW = auto()
    MATCH_KW = auto()
    FOR_KW = auto()
    IN_KW = auto()
    WHILE_KW = auto()
    RETURN_KW = auto()
    AS_KW = auto()
    TRUE_KW = auto()
    FALSE_KW = auto()

    # Contextual words: the lexer calls them IDENT, the parser renames them where they act as words.
    STATE_KW = auto()
    TEST_KW = auto()
    MAX_KW = auto()
    SPACE_KW = auto()  # host device pinned unified remote

    # Punctuation.
    L_PAREN = auto()
    R_PAREN = auto()
    L_BRACE = auto()
    R_BRACE = auto()
    L_BRACKET = auto()
    R_BRACKET = auto()
    COMMA = auto()
    SEMICOLON = auto()
    COLON = auto()
    COLON_COLON = auto()
    DOT = auto()
    DOT_DOT = auto()
    DOT_DOT_EQ = auto()
    ARROW = auto()
    FAT_ARROW = auto()
    EQ = auto()
    EQ_EQ = auto()
    BANG = auto()
    BANG_EQ = auto()
    LT = auto()
    LT_EQ = auto()
    GT = auto()
    GT_EQ = auto()  # the lexer gives `>` alone; the parser glues `>=`, `>>`, `>>=`
    SHL = auto()
    SHR = auto()
    PLUS = auto()
    MINUS = auto()
    STAR = auto()
    SLASH = auto()
    PERCENT = auto()
    AMP = auto()
    PIPE = auto()
    CARET = auto()
    AMP_AMP = auto()
    PIPE_PIPE = auto()
    PLUS_EQ = auto()
    MINUS_EQ = auto()
    STAR_EQ = auto()
    SLASH_EQ = auto()
    PERCENT_EQ = auto()
    AMP_EQ = auto()
    PIPE_EQ = auto()
    CARET_EQ = auto()
    SHL_EQ = auto()
    SHR_EQ = auto()
    QUESTION = auto()  # in no rule of the grammar: other languages have it, and are answered
    AT = auto()  # likewise

    END = auto()  # what the parser sees past the last token; never in a tree

    # Nodes: the file and its items.
    SOURCE_UNIT = auto()
    FN_ITEM = auto()
    STREAM_ITEM = auto()
    CONST_ITEM = auto()
    STRUCT_ITEM = auto()
    STRUCT_FIELD = auto()
    TYPE_ALIAS_ITEM = auto()
    USE_ITEM = auto()
    TEST_ITEM = auto()
    SIZE_PARAM_LIST = auto()
    SIZE_PARAM = auto()
    PARAM_LIST = auto()
    PARAM = auto()
    EFFECT_LIST = auto()
    EFFECT = auto()
    PATH = auto()

    # Nodes: types.
    NAME_TYPE = auto()
    TENSOR_TYPE = auto()
    TUPLE_TYPE = auto()
    PAREN_TYPE = auto()
    REF_TYPE = auto()
    SPACE_TYPE = auto()
    GENERIC_ARG_LIST = auto()
    GENERIC_ARG = auto()

    # Nodes: patterns.
    NAME_PATTERN = auto()
    WILDCARD_PATTERN = auto()
    TUPLE_PATTERN = auto()
    PAREN_PATTERN = auto()
    LITERAL_PATTERN = auto()
    RANGE_PATTERN = auto()
    OR_PATTERN = auto()

    # Nodes: statements.
    LET_STMT = auto()
    STATE_STMT = auto()
    ASSIGN_STMT = auto()
    EXPR_STMT = auto()
    RETURN_STMT = auto()
    FOR_STMT = auto()
    WHILE_STMT = auto()

    # Nodes: expressions.
    LITERAL = auto()
    PATH_EXPR = auto()
    UNARY_EXPR = auto()
    BORROW_EXPR = auto()
    BINARY_EXPR = auto()
    CAST_EXPR = auto()
    RANGE_EXPR = auto()
    CALL_EXPR = auto()
    METHOD_CALL_EXPR = auto()
    FIELD_EXPR = auto()
    INDEX_EXPR = auto()
    ARG_LIST = auto()
    ARG = auto()
    TUPLE_EXPR = auto()
    PAREN_EXPR = auto()
    ARRAY_EXPR = auto()
    REPEAT_EXPR = auto()
    STRUCT_EXPR = auto()
    STRUCT_EXPR_FIELD = auto()
    BLOCK = auto()
    IF_EXPR = auto()
    MATCH_EXPR = auto()
    MATCH_ARM = auto()
    LAMBDA_EXPR = auto()
    LAMBDA_PARAM = auto()

    ERROR = auto()  # tokens the grammar could not place

    @property
    def is_trivia(self) -> bool:
        """True for what the grammar never sees, reported bad bytes included."""
        return self <= LAST_TRIVIA

    @property
    def is_node(self) -> bool:
        return self > SyntaxKind.END

    @property
    def is_keyword(self) -> bool:
        return SyntaxKind.FN_KW <= self <= SyntaxKind.FALSE_KW


_K = SyntaxKind
LAST_TRIVIA = _K.BAD_BYTES
"""Kinds up to this one are trivia: what is asked for every token compares, instead of calling a property."""

KEYWORDS: dict[bytes, SyntaxKind] = {
    kind.name.removesuffix("_KW").lower().encode(): kind for kind in SyntaxKind if kind.is_keyword
}

#: Words that start a memory-space type when a type follows them.
SPACE_WORDS: frozenset[bytes] = frozenset((b"host", b"device", b"pinned", b"unified", b"remote"))

PUNCTUATION: dict[bytes, SyntaxKind] = {
    b"(": _K.L_PAREN, b")": _K.R_PAREN, b"{": _K.L_BRACE, b"}": _K.R_BRACE,
    b"[": _K.L_BRACKET, b"]": _K.R_BRACKET, b",": _K.COMMA, b";": _K.SEMICOLON,
    b":": _K.COLON, b"::": _K.COLON_COLON, b".": _K.DOT, b"..": _K.DOT_DOT, b"..=": _K.DOT_DOT_EQ,
    b"->": _K.ARROW, b"=>": _K.FAT_ARROW, b"=": _K.EQ, b"==": _K.EQ_EQ, b"!": _K.BANG,
    b"!=": _K.BANG_EQ, b"<": _K.LT, b"<=": _K.LT_EQ, b">": _K.GT, b">=": _K.GT_EQ,
    b"<<": _K.SHL, b">>": _K.SHR, b"+": _K.PLUS, b"-": _K.MINUS, b"*": _K.STAR, b"/": _K.SLASH,
    b"%": _K.PERCENT, b"&": _K.AMP, b"|": _K.PIPE, b"^": _K.CARET, b"&&": _K.AMP_AMP,
    b"||": _K.PIPE_PIPE, b"+=": _K.PLUS_EQ, b"-=": _K.MINUS_EQ, b"*=": _K.STAR_EQ,
    b"/=": _K.SLASH_EQ, b"%=": _K.PERCENT_EQ, b"&=": _K.AMP_EQ, b"|=": _K.PIPE_EQ,
    b"^=": _K.CARET_EQ, b"<<=": _K.SHL_EQ, b">>=": _K.SHR_EQ, b"?": _K.QUESTION, b"@": _K.AT,
}

#: How a kind is written, for messages and for the formatter.
SPELLING: dict[SyntaxKind, str] = {
    **{kind: text.decode() for text, kind in PUNCTUATION.items()},
    **{kind: text.decode() for text, kind in KEYWORDS.items()},
}

ASSIGN_KINDS: frozenset[SyntaxKind] = frozenset((
    _K.EQ, _K.PLUS_EQ, _K.MINUS_EQ, _K.STAR_EQ, _K.SLASH_EQ, _K.PERCENT_EQ, _K.AMP_EQ, _K.PIPE_EQ,
    _K.CARET_EQ, _K.SHL_EQ, _K.SHR_EQ,
))

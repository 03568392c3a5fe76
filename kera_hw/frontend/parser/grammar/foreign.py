"""Expressions as in Verilog, C, Python and Rust: what they are in Kera is said once, and parsing goes on.

Nothing here accepts anything: each method looks whether the tokens are such a habit, reports K0115 with what
to write instead, and leaves an ERROR node where an expression would stand.
"""
from __future__ import annotations

import re

from kera_hw.frontend.parser.core import CLOSERS, EXPR_START, OPENERS, ParserCore
from kera_hw.frontend.parser.grammar.foreign_words import MACROS, OPERATORS, PRINTS, scalar_type
from kera_hw.frontend.parser.rules import Completed
from kera_hw.frontend.syntax.kinds import SyntaxKind
from kera_hw.support import Fix, Span

K = SyntaxKind
#: What can stand behind `not` and behind no name.
_AFTER_WORD = EXPR_START - {
    K.MINUS, K.AMP, K.PIPE, K.PIPE_PIPE, K.L_BRACKET, K.L_PAREN, K.L_BRACE, K.IF_KW, K.MATCH_KW,
}
_CAST_OPERAND = (K.IDENT, K.INT, K.FLOAT, K.L_PAREN)
#: What never stands between braces of values alone.
_NEVER_JOINED = (K.SEMICOLON, K.FAT_ARROW, K.EQ, K.COLON, K.END)
_VALUE_WORDS = (K.AS_KW, K.TRUE_KW, K.FALSE_KW)
#: Look-ahead over brackets ends here, so that it stays linear on broken files.
_MOST_AHEAD = 200


class Foreign(ParserCore):
    """Mixin for what other languages have in expressions."""

    def foreign(self, message: str, span: Span | None = None, fix: Fix | None = None) -> None:
        """Report a habit of another language."""
        self.had_foreign = True
        self.error("K0115", message, span, fix=fix)

    def text_of(self, first: int, end: int | None = None) -> str:
        """The source from one token up to the one before another, by default the current one."""
        last = (self.pos if end is None else end) - 1
        if last < first:
            return ""
        return self.data[self.tokens[first].start:self.tokens[last].end].decode("utf-8", "replace")

    def same_line(self, ahead: int = 0) -> bool:
        """Whether a token stands on the line of the one before it."""
        index = self.pos + ahead
        return index < len(self.tokens) and not self.new_line[index]

    def partner(self, ahead: int = 0) -> int | None:
        """How far ahead the partner of the bracket at ``ahead`` is, None where it is not near."""
        depth = 0
        for index in range(ahead, ahead + _MOST_AHEAD):
            kind = self.nth(index)
            if kind in OPENERS:
                depth += 1
            elif kind in CLOSERS:
                depth -= 1
                if depth <= 0:
                    return index
            elif kind is K.END:
                break
        return None

    # -- operators ------------------------------------------------------------------------------

    def foreign_operator(self) -> tuple[str, str, int, int] | None:
        """A binary operator of another language here: as written, in Kera, its strength, and its tokens."""
        here = self.kinds[self.pos]
        if here is K.IDENT:
            found = OPERATORS.get(self.word())
            if found is None or not self.same_line() or self.nth(1) not in EXPR_START:
                return None
            return self.word().decode(), found[0], found[1], 1
        for text, kinds, meant, strength in _GLUED.get(here, ()):
            if all(self.nth(k) is kind and self.adjacent(k - 1) for k, kind in enumerate(kinds[1:], 1)):
                return text, meant, strength, len(kinds)
        return None

    def at_step(self) -> bool:
        """Whether `++` or `--` stands behind an expression."""
        here = self.kinds[self.pos]
        return (
            (here is K.PLUS or here is K.MINUS) and self.nth(1) is here and self.adjacent(0)
            and (self.nth(2) not in EXPR_START or not self.same_line(2))
        )

    def step_after(self, found: Completed) -> Completed:
        """`x++`."""
        operator = self.word().decode()
        target = self.text_of(found.first_token)
        marker = self.open_around(found)
        self.bump(count=2)
        span = self.span_since(found.first_token)
        fix = Fix("write an assignment", span, f"{target} {operator}= 1")
        self.foreign(f"The language has no `{operator * 2}`.", span, fix)
        return self.close(marker, K.ERROR)

    def step_before(self, struct_ok: bool) -> Completed:
        """`++x`, and `+x`."""
        first, doubled = self.pos, self.nth(1) is K.PLUS and self.adjacent(0)
        marker = self.open()
        sign, echo = self.span_here(), self.near_bad[first]
        self.bump(count=2 if doubled else 1)
        operand = self.pos
        self.unary_operand(struct_ok)
        if doubled and not echo:
            span = self.span_since(first)
            fix = Fix("write an assignment", span, f"{self.text_of(operand)} += 1")
            self.foreign("The language has no `++`.", span, fix)
        elif not echo:
            self.foreign("There is no `+` before a value.", sign, Fix("remove it", sign, "", safe=True))
        return self.close(marker, K.ERROR)

    def dereference(self, struct_ok: bool) -> Completed:
        """`*x`."""
        marker, mark = self.open(), self.span_here()
        echo = self.near_bad[self.pos]
        self.bump()
        self.unary_operand(struct_ok)
        if not echo:
            fix = Fix("remove the `*`", mark, "")
            self.foreign("There are no pointers; what is lent is used by its name.", mark, fix)
        return self.close(marker, K.ERROR)

    def refuse_operator(self, found: Completed, operator: tuple[str, str, int, int], span: Span) -> None:
        """Report an operator that has been read with its operands; ``found`` is the whole."""
        text, meant, _, _ = operator
        if meant != "**":
            self.foreign(f"`{text}` is written `{meant}`.", span, Fix(f"write `{meant}`", span, meant))
            return
        base, power = self.text_of(found.first_token).split("**", 1)
        base, power = base.strip(), power.strip()
        fix = Fix("multiply in a loop, or shift 1 for a power of two")
        if power in ("2", "3") and base.replace("_", "").isalnum():
            fix = Fix("multiply", self.span_since(found.first_token), " * ".join([base] * int(power)))
        self.foreign("The language has no power operator.", span, fix)

    def conditional(self, found: Completed, struct_ok: bool) -> Completed:
        """`c ? a : b` and `a if c else b` after their first part; the part itself for anything else."""
        if self.at(K.QUESTION):
            return self._ternary(found, struct_ok)
        if self.at(K.IF_KW) and self.same_line() and self.nth(1) is not K.L_BRACE:
            return self._python_if(found)
        return found

    def _ternary(self, found: Completed, struct_ok: bool) -> Completed:
        mark = self.span_here()
        condition = self.text_of(found.first_token)
        outermost, self.in_ternary = not self.in_ternary, True
        marker = self.open_around(found)
        self.bump()
        fix = Fix("write `if c { a } else { b }`")
        if self.current in EXPR_START:
            first = self.pos
            self.open_expression(struct_ok)
            yes, no = self._branch_text(first), ""
            if self.eat(K.COLON):
                second = self.pos
                self.open_expression(struct_ok)
                no = self._branch_text(second)
            made = f"if {condition} {{ {yes} }} else {no if no.startswith('if ') else f'{{ {no} }}'}"
            if no:
                self.rewritten[found.first_token] = made
                fix = Fix("write an `if`", self.span_since(found.first_token), made)
        if outermost:
            self.in_ternary = False
            self.foreign("The language has no `?`; `if` gives a value.", mark, fix)
        return self.close(marker, K.ERROR)

    def _branch_text(self, first: int) -> str:
        return self.rewritten.get(first) or self.text_of(first)

    def _python_if(self, found: Completed) -> Completed:
        value, mark = self.text_of(found.first_token), self.span_here()
        marker = self.open_around(found)
        self.bump()
        first = self.pos
        self.open_expression(struct_ok=False)
        condition = self.text_of(first)
        fix = Fix("write `if c { a } else { b }`")
        if self.eat(K.ELSE_KW):
            second = self.pos
            self.open_expression()
            made = f"if {condition} {{ {value} }} else {{ {self.text_of(second)} }}"
            fix = Fix("write an `if`", self.span_since(found.first_token), made)
        self.foreign("The condition stands first: `if c { a } else { b }`.", mark, fix)
        return self.close(marker, K.ERROR)

    def then_branch(self, first: int) -> bool:
        """`if c then a else b`, where a `{` should stand; ``first`` is the token `if`."""
        if not self.at_word(b"then"):
            return False
        condition, mark = self.text_of(first + 1), self.span_here()
        self.bump_error()
        self.eat(K.COLON)
        start = self.pos
        if self.at(K.L_BRACE):
            self.block()
            self.foreign("There is no `then` before the block.", mark, Fix("remove it", mark, ""))
            return True
        self.open_expression()
        value, fix = self.text_of(start), None
        if self.at(K.ELSE_KW):
            self.bump()
            start = self.pos
            self.open_expression()
            made = f"if {condition} {{ {value} }} else {{ {self.text_of(start)} }}"
            fix = Fix("write braces", self.span_since(first), made)
        self.foreign("The branches of `if` stand in braces, without `then`.", mark, fix)
        return True

    def prefix_word(self, struct_ok: bool) -> Completed | None:
        """`not x` and `lambda x: e`."""
        if not self.same_line(1) or self.nth(1) not in _AFTER_WORD:
            return None
        if self.at_word(b"not"):
            marker, mark = self.open(), self.span_here()
            self.bump()
            self.unary_operand(struct_ok)
            whole = Span(mark.start, self.tokens[marker.first_token + 1].start)
            self.foreign("`not` is written `!`.", mark, Fix("write `!`", whole, "!"))
            return self.close(marker, K.ERROR)
        if self.at_word(b"lambda"):
            self.foreign("A lambda has bars around its parameters.", fix=Fix("write `|x| ..`"))
            marker = self.open()
            while not (self.at(K.COLON) or self.at(K.END) or self.new_line[self.pos + 1]):
                self.bump()
            self.eat(K.COLON)
            self.open_expression(struct_ok)
            return self.close(marker, K.ERROR)
        return None

    def type_argument(self) -> None:
        """`round_to(x, fix<16, 8>)`: a type among the arguments."""
        marker, first = self.open(), self.pos
        self.type_()
        span = self.span_since(first)
        kind = self.text_of(first)
        fix = Fix(f"write `f::<{kind}>(..)`")
        self.foreign("A type is given behind the function's name.", span, fix)
        self.close(marker, K.ERROR)

    # -- brackets -------------------------------------------------------------------------------

    def macro(self, first: int) -> bool:
        """`println!(..)` behind its name; the caller closes the node."""
        if not (self.at(K.BANG) and self.nth(1) in OPENERS and self.adjacent(0) and self.same_line()):
            return False
        name = self.text_of(first)
        self.bump()
        opener = self.pos
        self.skip_balanced()
        inner = self.text_of(opener + 1, self.pos - 1)
        span = self.span_since(first)
        if name in ("assert", "assert_eq"):
            fix = Fix("leave out the `!`", span, f"{name}({inner})")
        elif name == "vec":
            fix = Fix("list the elements", span, f"[{inner}]")
        else:
            fix = Fix(_print_advice(inner) if name in PRINTS else MACROS.get(name, "call a function"))
        self.foreign(f"The language has no macros such as `{name}!`.", span, fix)
        return True

    def cast_before(self, found: Completed, struct_ok: bool) -> Completed:
        """`(u8) x`: a type in parentheses before a value."""
        first = found.first_token
        if self.pos != first + 3 or not self.same_line() or self.current not in _CAST_OPERAND:
            return found
        word = self.data[self.tokens[first + 1].start:self.tokens[first + 1].end]
        kind = scalar_type(word.decode("utf-8", "replace"))
        if kind is None or self.kinds[first + 1] is not K.IDENT:
            return found
        marker = self.open_around(found)
        operand = self.pos
        self.unary_operand(struct_ok)
        span = self.span_since(first)
        fix = Fix("convert with `as`", span, f"{self.text_of(operand)} as {kind}")
        self.foreign("A conversion stands behind its value.", span, fix)
        return self.close(marker, K.ERROR)

    def concatenation(self) -> Completed | None:
        """`{a, b}` and `{4{a}}`, where a block could stand."""
        end = self._joining()
        if end is None:
            return None
        marker, first = self.open(), self.pos
        made = self._joined(first, first + end)
        while self.pos <= first + end:
            self.bump()
        span = self.span_since(first)
        fix = Fix("join the bits with `cat`", span, made) if made else Fix("join the bits with `cat(a, b)`")
        self.foreign("Braces stand around statements and do not join bits.", span, fix)
        return self.close(marker, K.ERROR)

    def _joining(self) -> int | None:
        """How far ahead braces end that hold values with commas between, or a number of copies of some."""
        if self.nth(1) is K.INT and self.nth(2) is K.L_BRACE:
            end = self.partner(2)
            return end + 1 if end is not None and self.nth(end + 1) is K.R_BRACE else None
        if self.nth(1) in (K.PIPE, K.PIPE_PIPE):
            return None
        commas, ahead = 0, 1
        while ahead < _MOST_AHEAD:
            kind = self.nth(ahead)
            if kind is K.R_BRACE:
                return ahead if commas else None
            if kind in _NEVER_JOINED or (kind.is_keyword and kind not in _VALUE_WORDS):
                return None
            commas += kind is K.COMMA
            if kind is K.LT and self._opens_arguments(ahead):
                while self.nth(ahead) not in (K.GT, K.SEMICOLON, K.END):
                    ahead += 1
            closer = self.partner(ahead) if kind in OPENERS else ahead
            if closer is None:
                return None
            ahead = closer + 1
        return None

    def _opens_arguments(self, ahead: int) -> bool:
        """Whether the `<` at a token opens compile-time arguments, whose commas join nothing."""
        return self.nth(ahead - 1) is K.COLON_COLON or self.word(ahead - 1) in (b"fix", b"ufix")

    def _joined(self, first: int, last: int) -> str:
        """The call of `cat` for the braces at two tokens; empty where there are too many copies."""
        if self.kinds[first + 1] is K.INT and self.kinds[first + 2] is K.L_BRACE:
            count = self.text_of(first + 1, first + 2)
            inner = self.text_of(first + 3, last - 1)
            return f"cat({', '.join([inner] * int(count))})" if count in map(str, range(1, 9)) else ""
        parts = self.text_of(first + 1, last)
        return f"cat({parts})" if "{" not in parts else ""

    def colon_slice(self, base: int, opener: int) -> bool:
        """What follows an index's first entry, `:4`, `+: 8`: taken as far as the bracket; False for nothing.

        ``base`` and ``opener`` are the tokens where the indexed value and the index begin."""
        moving = self.current in (K.PLUS, K.MINUS) and self.nth(1) is K.COLON
        if not moving and not self.at(K.COLON):
            return False
        low, sign = self.text_of(opener + 1), self.word().decode() if moving else ""
        if moving:
            self.bump()
        self.bump()
        start = self.pos
        if not self.at(K.R_BRACKET):
            self.open_expression()
        high = self.text_of(start)
        name = self.text_of(base, opener)
        if not self.at(K.R_BRACKET):
            self.skip_until(frozenset((K.SEMICOLON,)))
        span = Span(self.tokens[base].start, self.span_here().end)
        self.foreign(*_slice_advice(name, low, sign, high, span))
        return True


def _slice_advice(name: str, low: str, sign: str, high: str, span: Span) -> tuple[str, Span, Fix]:
    """Message, place and fix for `name[low:high]`, or `name[low sign: high]`."""
    if sign:
        width = f" {sign} {int(high) - 1}" if high.isdigit() else f" {sign} ({high} - 1)"
        ends = (f"{low}{width}", low) if sign == "+" else (low, f"{low}{width}")
        made = f"{name}.bits({ends[0]}, {ends[1]})"
        return "Bits are taken with `bits`.", span, Fix(f"write `{made}`", span, made)
    numbers = low.isdigit() and high.isdigit()
    if numbers and int(low) >= int(high):
        made = f"{name}.bits({low}, {high})"
        return "Bits are taken with `bits`.", span, Fix(f"write `{made}`", span, made)
    if numbers or not low or not high:
        made = f"{name}[{low}..{high}]"
        return "A slice is written with `..`.", span, Fix(f"write `{made}`", span, made)
    message = "A range in an index is written with `..`, and bits are taken with `bits`."
    bits, elements = f"{name}.bits({low}, {high})", f"{name}[{low}..{high}]"
    return message, span, Fix(f"for bits write `{bits}`, for elements `{elements}`")


def _print_advice(arguments: str) -> str:
    """What `println!(arguments)` is: the text before the first place is the label."""
    found = re.match(r'"([^"{]*)[^"]*"\s*,?\s*(.*)', arguments, re.DOTALL)
    label = found[1].strip(" =:") if found is not None else ""
    values = found[2] if found is not None else "x"
    call = f'print("{label or "label"}"{", " if values else ""}{values})'
    return f"write `{call}`, and `! io` in the signature"


#: Operators made of several tokens, by the first: as written, the tokens, in Kera, and how tightly they bind.
_GLUED: dict[SyntaxKind, tuple[tuple[str, tuple[SyntaxKind, ...], str, int], ...]] = {
    K.EQ_EQ: (("===", (K.EQ_EQ, K.EQ), "==", 3),), K.BANG_EQ: (("!==", (K.BANG_EQ, K.EQ), "!=", 3),),
    K.LT: (("<>", (K.LT, K.GT), "!=", 3),), K.STAR: (("**", (K.STAR, K.STAR), "**", 9),),
    K.GT: ((">>>", (K.GT, K.GT, K.GT), ">>", 7),), K.SHL: (("<<<", (K.SHL, K.LT), "<<", 7),),
}

"""A cursor over the tokens of one statement: matching words, names, literals, and durations,
and errors that point.

All words come as VAR tokens; a word is a keyword only where the grammar asks for it. Token
positions are relative to the statement's own slice; `base` moves them to the whole text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import NoReturn, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.nodes import UNITS
from penstock.sql.plan import Duration
from penstock.sql.source import Source
from penstock.sql.statements import Name
from penstock.sql.words import RESERVED, meant

T = TypeVar("T")

#: A length of time must fit 64 bits of nanoseconds; KEEP may be longer, nothing is computed with it
#: in ticks.
MAX_YEARS = 290
MAX_KEEP_YEARS = 1000
MAX_DIGITS = 40
#: Messages that are told what stands there instead.
_FOUND = ("expected", "the statement", "this is no")
_QUOTED_LENGTH = re.compile(rf"([0-9]+)([{''.join(UNITS)}])", re.IGNORECASE)
#: Where a placeholder stands that no value may take.
NO_PLACEHOLDER = (
    "a parameter is a value in a SELECT, in VALUES and TAGS of an INSERT, or in the WHERE of a"
    " DELETE; names, keywords and lengths of time cannot be parameters"
)
END = Token(TokenType.SENTINEL, "")


class TokenCursor:
    """Reads `tokens` from left to right. Every failure is a `SqlSyntaxError` at the token in
    question.
    """

    def __init__(
        self, tokens: list[Token], source: Source, base: int = 0, end: int | None = None
    ) -> None:
        self.tokens = tokens
        self.source = source
        self.base = base
        #: offset just behind the statement, where "unexpected end" points.
        self.stop = len(source.text) if end is None else end
        self.index = 0
        #: what was accepted and does nothing here, one sentence each.
        self.notices: list[str] = []

    # ---------------------------------------------------------------- looking

    @property
    def token(self) -> Token:
        return self.tokens[self.index] if self.index < len(self.tokens) else END

    def ahead(self, n: int) -> Token:
        """The token *n* behind the current one."""
        return self.tokens[self.index + n] if self.index + n < len(self.tokens) else END

    @property
    def at_end(self) -> bool:
        return self.index >= len(self.tokens)

    @property
    def offset(self) -> int:
        """Offset of the current token in the source."""
        return self.stop if self.at_end else self.base + self.tokens[self.index].start

    @property
    def previous_end(self) -> int:
        """Offset just behind the token read last."""
        return self.base + self.tokens[self.index - 1].end + 1 if self.index else self.base

    def word(self, n: int = 0) -> str:
        """The word *n* tokens ahead in upper case; empty when that token is no bare word."""
        token = self.ahead(n)
        return token.text.upper() if token.token_type is TokenType.VAR else ""

    def sees(self, *words: str) -> bool:
        """Return True when the next tokens are these words."""
        return all(self.word(n) == w for n, w in enumerate(words))

    def sees_type(self, kind: TokenType, n: int = 0) -> bool:
        return self.ahead(n).token_type is kind

    def placeholder_tokens(self, n: int = 0) -> int:
        """Return how many tokens the placeholder *n* tokens ahead has; 0 when there is none."""
        token = self.ahead(n)
        if token.token_type is TokenType.PLACEHOLDER:
            return 1
        name = self.ahead(n + 1)
        touches = name.token_type is TokenType.VAR and name.start == token.end + 1
        named = token.token_type is TokenType.COLON and touches and name.text.isidentifier()
        return 2 if named else 0

    # ---------------------------------------------------------------- taking

    def take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        if not self.sees(*words):
            return False
        self.index += len(words)
        return True

    def take_type(self, kind: TokenType) -> bool:
        if self.token.token_type is not kind:
            return False
        self.index += 1
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                self.fail(f"expected {word}")

    def expect_type(self, kind: TokenType, shown: str) -> Token:
        token = self.token
        if token.token_type is not kind:
            self.fail(f"expected {shown}")
        self.index += 1
        return token

    def open(self) -> None:
        self.expect_type(TokenType.L_PAREN, '"("')

    def close(self) -> None:
        self.expect_type(TokenType.R_PAREN, '"," or ")"')

    def expect_end(self) -> None:
        """Everything has been read."""
        if not self.at_end:
            self.fail("the statement should end here")

    def one_of(self, words: Iterable[str], shown: str) -> str:
        """Take one of *words*."""
        known = tuple(words)
        word = self.word()
        if word not in known:
            self.fail(f"expected {shown}", hint=meant(word or self.token.text, known))
        self.index += 1
        return word

    def list_of(self, item: Callable[[], T]) -> tuple[T, ...]:
        """`item, item, …`"""
        items = [item()]
        while self.take_type(TokenType.COMMA):
            items.append(item())
        return tuple(items)

    def list_in_parentheses(self, item: Callable[[], T]) -> tuple[T, ...]:
        """`(item, item, …)`"""
        self.open()
        items = self.list_of(item)
        self.close()
        return items

    # ---------------------------------------------------------------- names

    def identifier(self, shown: str = "a name") -> str:
        """A bare or backticked name."""
        token = self.token
        if token.token_type is TokenType.IDENTIFIER:
            if not token.text:
                self.fail("a name cannot be empty")
        elif token.token_type is not TokenType.VAR:
            self.fail(f"expected {shown}")
        elif token.text.upper() in RESERVED:
            self.fail(
                f"expected {shown}, found the reserved word {token.text.upper()}",
                hint=f"put it in backticks: `{token.text}`",
            )
        elif (
            not (token.text[0].isalpha() or token.text[0] == "_")
            or not token.text.replace("_", "a").isalnum()
        ):
            self.fail(f"expected {shown}", hint="put unusual names in backticks")
        self.index += 1
        return token.text

    def name(self, shown: str = "a table name") -> Name:
        """`[database.]name`"""
        start = self.offset
        first = self.identifier(shown)
        if self.take_type(TokenType.DOT):
            return Name(self.identifier(shown), first, start)
        return Name(first, None, start)

    def if_exists(self) -> bool:
        return self.take("IF", "EXISTS")

    def if_not_exists(self) -> bool:
        return self.take("IF", "NOT", "EXISTS")

    # ---------------------------------------------------------------- literals

    def string(self, shown: str = "a string") -> str:
        return self.expect_type(TokenType.STRING, shown).text

    def integer(self, shown: str = "a whole number") -> int:
        """An unsigned whole number."""
        token = self.token
        if (
            token.token_type is not TokenType.NUMBER
            or not token.text.isdigit()
            or self.unit_follows()
            or len(token.text) > 20
        ):
            self.fail(f"expected {shown}")
        self.index += 1
        return int(token.text)

    def flag(self) -> bool:
        """`0` or `1`"""
        token = self.token
        if (
            token.token_type is not TokenType.NUMBER
            or token.text not in ("0", "1")
            or self.unit_follows()
        ):
            self.fail("expected 0 or 1")
        self.index += 1
        return token.text == "1"

    def unit_follows(self) -> bool:
        """Return True when a word touches the number at the cursor, as in `10s`."""
        number = self.token
        word = self.ahead(1)
        return (
            number.token_type is TokenType.NUMBER
            and word.token_type is TokenType.VAR
            and word.start == number.end + 1
        )

    def sees_duration(self) -> bool:
        return self.unit_follows() and self.word(1).lower() in UNITS and self.token.text.isdigit()

    def duration(
        self, shown: str = "a length of time such as 10s", years: int = MAX_YEARS
    ) -> Duration:
        """`10s`, also written as a string `'10s'`; at most *years* long."""
        token = self.token
        if (
            token.token_type is TokenType.STRING
            and token.text[:-1].isascii()
            and token.text[:-1].isdigit()
            and token.text[-1].lower() in UNITS
        ):
            digits = token.text[:-1]
            unit = token.text[-1].lower()
            used = 1
        elif self.sees_duration():
            digits = token.text
            unit = self.ahead(1).text.lower()
            used = 2
        else:
            self.fail(
                f"expected {shown}",
                hint=(
                    f"a whole number and one unit of {' '.join(UNITS)}, without a blank: 500a,"
                    " 10s, 1n"
                ),
            )
        value = Duration(int(digits[:MAX_DIGITS]), unit)  # type: ignore[arg-type]
        if len(digits) > MAX_DIGITS or too_long(value, years):
            self.fail(f"a length of time may have {years} years", hint="use a shorter time")
        self.index += used
        return value

    def number_value(self, sign: int = 1) -> int | float | Decimal:
        """The number at the cursor as a value: int, float, or Decimal where a float would lose
        digits.
        """
        token = self.token
        if token.token_type is not TokenType.NUMBER or self.unit_follows():
            self.fail("expected a number")
        try:
            value = number(token.text)
        except (ValueError, ArithmeticError):
            self.fail("this is no number, or one out of range")
        self.index += 1
        return value if sign > 0 else negate(value)

    # ---------------------------------------------------------------- failing

    def fail(
        self, message: str, *, code: str | None = None, hint: str = "", index: int | None = None
    ) -> NoReturn:
        """Raise at the current token (or the one at *index*)."""
        if index is not None:
            self.index = index
        if self.at_end:
            raise self.source.syntax_error(
                f"{message}, but the statement ends", self.stop, code=code, hint=hint
            )
        token = self.token
        shown = self.source.shown[self.base + token.start : self.base + token.end + 1]
        if message.startswith(_FOUND) and "found" not in message:
            message += f", found {shown if len(shown) <= 30 else shown[:30] + '…'}"
        if self.placeholder_tokens():
            hint = NO_PLACEHOLDER
        raise self.source.syntax_error(
            message, self.offset, token.end + 1 - token.start, code=code, hint=hint
        )


def number(text: str) -> int | float | Decimal:
    """The value of a number's text without sign; ValueError or ArithmeticError where there is none
    that fits.
    """
    if text.isdigit():
        if len(text) > MAX_DIGITS:
            raise ValueError("too many digits")
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("out of range")
    return value if len(text) <= 16 else Decimal(text)


def negate(value: int | float | Decimal) -> int | float | Decimal:
    """The number with the other sign and all its digits (Decimal's minus rounds to 28)."""
    return value.copy_negate() if isinstance(value, Decimal) else -value


def too_long(length: Duration, years: int = MAX_YEARS) -> bool:
    """Return True when *length* is longer than *years*."""
    return length.ticks("us") > Duration(years, "y").ticks("us")

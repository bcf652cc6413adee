"""A place in the tokens of a query, and the words that move it on."""

from __future__ import annotations

from gateway.wires.influxql.lexer import (
    BoundValues,
    Token,
    TokenKind,
    length_of,
    tokens,
    unexpected,
)
from penstock.errors import SqlSyntaxError

_LONGEST_NUMBER = 40


class TokenReader:
    """Steps through tokens. Raises SqlSyntaxError in InfluxDB's words."""

    def __init__(self, text: str, bound: BoundValues | None = None) -> None:
        self._text = text
        self._tokens = tokens(text, bound)
        self._at = 0

    @property
    def here(self) -> Token:
        """The token that is next."""
        return self._tokens[self._at]

    @property
    def ended(self) -> bool:
        return self.here.kind == "end"

    def step(self) -> None:
        if self._at < len(self._tokens) - 1:
            self._at += 1

    def wrong(self, wanted: str) -> SqlSyntaxError:
        """Make the error of the next token."""
        return unexpected(self._text, self.here, wanted)

    def is_word(self, *words: str) -> bool:
        return self.here.kind == "word" and self.here.text.upper() in words

    def is_sign(self, *signs: str) -> bool:
        return self.here.kind == "sign" and self.here.text in signs

    def take_word(self, word: str) -> bool:
        """Tell whether *word* is next, and step over it."""
        return self._take("word", word)

    def take_sign(self, sign: str) -> bool:
        """Tell whether *sign* is next, and step over it."""
        return self._take("sign", sign)

    def _take(self, kind: TokenKind, text: str) -> bool:
        if self.here.kind != kind or self.here.text.upper() != text:
            return False
        self.step()
        return True

    def want_word(self, *words: str) -> str:
        """Step over one of *words*, and return it."""
        if not self.is_word(*words):
            raise self.wrong(", ".join(words))
        found = self.here.text.upper()
        self.step()
        return found

    def want_sign(self, sign: str) -> None:
        if not self.take_sign(sign):
            raise self.wrong(sign)

    def identifier(self) -> str:
        """Step over a name, with quotes or without."""
        token = self.here
        if token.kind not in ("word", "name") or not token.text:
            raise self.wrong("identifier")
        self.step()
        return token.text

    def number(self) -> int | float:
        """Step over a number that may have a sign in front."""
        negative = self.take_sign("-")
        token = self.here
        if token.kind != "number" or len(token.text) > _LONGEST_NUMBER:
            raise self.wrong("number")
        self.step()
        value = float(token.text) if "." in token.text else int(token.text)
        return -value if negative else value

    def count(self) -> int:
        """Step over a whole number that is not negative."""
        token = self.here
        if token.kind != "number" or not token.text.isdigit() or len(token.text) > 18:
            raise self.wrong("integer")
        self.step()
        return int(token.text)

    def length(self) -> int:
        """Step over a duration, and return its nanoseconds."""
        token = self.here
        if token.kind != "duration":
            raise self.wrong("duration")
        self.step()
        return length_of(token.text)

"""The place in a statement where it could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import SqlSyntaxError
from penstock.sql.source import Source

_END = Token(TokenType.SENTINEL, "")


@dataclass(frozen=True)
class Place:
    """Tokens of one statement, and which of them the error is at: `len(tokens)` for its end.

    Methods count tokens from there: 0 is the one of the error, -1 the one before.
    """

    source: Source
    start: int
    end: int
    tokens: Sequence[Token]
    index: int
    error: SqlSyntaxError

    def token(self, n: int = 0) -> Token:
        at = self.index + n
        return self.tokens[at] if 0 <= at < len(self.tokens) else _END

    def kind(self, n: int = 0) -> TokenType:
        return self.token(n).token_type

    def word(self, n: int = 0) -> str:
        """The bare word there in upper case, or nothing."""
        return self.token(n).text.upper() if self.kind(n) is TokenType.VAR else ""

    def offset(self, n: int = 0) -> int:
        """Where the token begins in the source."""
        return self.end if self.kind(n) is TokenType.SENTINEL else self.start + self.token(n).start

    def shown(self, n: int = 0) -> str:
        """The token as written, shortened."""
        token = self.token(n)
        text = self.source.shown[self.start + token.start : self.start + token.end + 1]
        return text if len(text) <= 60 else text[:60] + "…"

    def touches(self, n: int = 0) -> bool:
        """Tell if nothing stands between the token and the one before it."""
        return (
            TokenType.SENTINEL not in (self.kind(n), self.kind(n - 1))
            and self.token(n).start == self.token(n - 1).end + 1
        )

    def last_opened(self) -> int | None:
        """Return which token is the last parenthesis that is open at the error."""
        opened: list[int] = []
        for n, token in enumerate(self.tokens[: self.index]):
            if token.token_type is TokenType.L_PAREN:
                opened.append(n)
            elif token.token_type is TokenType.R_PAREN and opened:
                opened.pop()
        return opened[-1] if opened else None

    def says(self, *beginnings: str) -> bool:
        """Tell if the message of the error begins with one of these."""
        return self.error.message.startswith(beginnings)

    def hinted(self, hint: str) -> SqlSyntaxError:
        """The same error with another hint."""
        error = self.error
        return SqlSyntaxError(
            error.message,
            code=error.code,
            hint=hint,
            line=error.line,
            column=error.column,
            snippet=error.snippet,
        )

    def mistake(self, message: str, hint: str, n: int = 0) -> SqlSyntaxError:
        """Another error, at a token."""
        token = self.token(n)
        length = 1 if token is _END else token.end + 1 - token.start
        return self.source.syntax_error(message, self.offset(n), length, hint=hint)

"""`?` and `:name`, where a value comes from outside the text."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql import nodes
from penstock.sql.parsers.column_types import TypeParser
from penstock.sql.source import mark
from penstock.sql.statements import Placeholder

_STARTS = (TokenType.PLACEHOLDER, TokenType.COLON)


class PlaceholderParser(TypeParser):
    """The grammar of placeholders."""

    def placeholder(self) -> exp.Expr:
        """Read `?` or `:name`."""
        start = self.offset
        self.index += self.placeholder_tokens()
        node = nodes.Placeholder(this=self._name_before(self.index))
        mark(node, start, self.previous_end)
        return node

    def placeholders(self) -> tuple[Placeholder, ...]:
        """Find all of the statement, wherever they stand."""
        found = []
        for at, token in enumerate(self.tokens):
            if token.token_type not in _STARTS:
                continue
            used = self.placeholder_tokens(at - self.index)
            if used:
                end = self.base + self.tokens[at + used - 1].end + 1
                start = self.base + token.start
                found.append(Placeholder(self._name_before(at + used), start, end))
        return tuple(found)

    def _name_before(self, index: int) -> str:
        token = self.tokens[index - 1]
        return "" if token.token_type is TokenType.PLACEHOLDER else token.text

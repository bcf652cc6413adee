"""`?` and `:name`, where a value comes from outside the text."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql import nodes
from penstock.sql.parsers.column_types import TypeParser
from penstock.sql.source import mark
from penstock.sql.statements import Placeholder


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
        for n in range(-self.index, len(self.tokens) - self.index):
            used = self.placeholder_tokens(n)
            if used:
                at = self.index + n
                start = self.base + self.tokens[at].start
                end = self.base + self.tokens[at + used - 1].end + 1
                found.append(Placeholder(self._name_before(at + used), start, end))
        return tuple(found)

    def _name_before(self, index: int) -> str:
        token = self.tokens[index - 1]
        return "" if token.token_type is TokenType.PLACEHOLDER else token.text

"""Literal values as INSERT, TAGS and RECALCULATE take them: plain Python objects, no expression
trees.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.query import QueryParser
from penstock.sql.plan import Duration
from penstock.sql.statements import RelativeTime, Value


class ValueParser(QueryParser):
    """`value()` on top of the query grammar. `notices` collects what was accepted and ignored."""

    def value(self) -> Value:
        """NULL, TRUE, FALSE, a string, a number, or a time: `now`, `now + 1s`, `'2024-01-01' +
        1d`.
        """
        start = self.index
        base = self._base_value()
        if not (self.sees_type(TokenType.PLUS) or self.sees_type(TokenType.DASH)):
            return base
        if isinstance(base, RelativeTime):
            return RelativeTime(base.base, self._steps(), base.literal)
        if isinstance(base, str) or (isinstance(base, int) and not isinstance(base, bool)):
            return RelativeTime(base, self._steps(), isinstance(base, str))
        self.fail("arithmetic is only allowed on times", index=start)

    def _steps(self) -> tuple[tuple[Literal[1, -1], Duration], ...]:
        steps: list[tuple[Literal[1, -1], Duration]] = []
        while self.sees_type(TokenType.PLUS) or self.sees_type(TokenType.DASH):
            sign: Literal[1, -1] = 1 if self.sees_type(TokenType.PLUS) else -1
            self.index += 1
            steps.append((sign, self.duration()))
        return tuple(steps)

    def _base_value(self) -> Value:
        if self.sees_type(TokenType.STRING):
            return self.string()
        if self.take_type(TokenType.DASH):
            return self._numeric(-1)
        if self.take_type(TokenType.PLUS) or self.sees_type(TokenType.NUMBER):
            return self._numeric(1)
        word = self.word()
        if word in ("NOW", "TODAY"):
            self.index += 1
            if self.take_type(TokenType.L_PAREN):
                self.close()
            return RelativeTime(word.lower())
        if word in ("NULL", "TRUE", "FALSE"):
            self.index += 1
            return None if word == "NULL" else word == "TRUE"
        self.fail(
            "expected a value",
            hint="a number, a string in quotes, NULL, TRUE, FALSE, or a time such as now + 1s",
        )

    def _numeric(self, sign: int) -> int | float | Decimal:
        return self.number_value(sign)

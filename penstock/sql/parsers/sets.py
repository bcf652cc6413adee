"""UNION, EXCEPT and INTERSECT."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.common_tables import WithParser
from penstock.sql.parsers.expression import MAX_DEPTH

_KINDS: dict[str, type[exp.SetOperation]] = {
    "UNION": exp.Union,
    "EXCEPT": exp.Except,
    "INTERSECT": exp.Intersect,
}


class SetParser(WithParser):
    """The grammar of queries with words between them."""

    def _sets(self, term: Callable[[], exp.Query]) -> exp.Query:
        """Read `term [UNION | EXCEPT | INTERSECT [ALL] term]…`; INTERSECT binds more tightly."""
        return self._chain_of_sets(
            ("UNION", "EXCEPT"), lambda: self._chain_of_sets(("INTERSECT",), term)
        )

    def _chain_of_sets(self, words: tuple[str, ...], operand: Callable[[], exp.Query]) -> exp.Query:
        left = operand()
        count = 0
        while self.word() in words:
            word = self.one_of(words, "a word between queries")
            count += 1
            if count > MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} queries in one {word}")
            distinct = not self.take("ALL")
            left = _KINDS[word](this=left, expression=operand(), distinct=distinct)
        return left

    def _sees_set(self) -> bool:
        """Return True at EXCEPT or INTERSECT and a query: elsewhere the words are names."""
        follows = self.word(1) in ("SELECT", "ALL") or self.sees_type(TokenType.L_PAREN, 1)
        return self.word() in ("EXCEPT", "INTERSECT") and follows

"""Expressions: operators, calls, CASE, CAST, literals and columns, as sqlglot trees.

Comparisons do not chain (`a = b = c` is refused), so a tree has one text and a text one tree. Every
function is an `exp.Anonymous` with a lower-case name: which functions there are is the compiler's
business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql import nodes
from penstock.sql.parsers.placeholders import PlaceholderParser
from penstock.sql.source import mark
from penstock.sql.words import RESERVED

#: Nested parentheses, calls and subqueries; deeper text is refused before Python's stack is in
#: danger.
MAX_DEPTH = 48
#: Operators in one chain such as a + b + c + …
MAX_CHAIN = 400

_COMPARE: dict[TokenType, type[exp.Expr]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
}
_BITS: dict[TokenType, type[exp.Expr]] = {
    TokenType.AMP: exp.BitwiseAnd,
    TokenType.PIPE: exp.BitwiseOr,
}
_SUMS: dict[TokenType, type[exp.Expr]] = {TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub}
_PRODUCTS: dict[TokenType, type[exp.Expr]] = {
    TokenType.STAR: exp.Mul,
    TokenType.SLASH: exp.Div,
    TokenType.MOD: exp.Mod,
}
T = TypeVar("T")
#: Words that are functions of no arguments even without parentheses.
_MOMENTS = ("NOW", "TODAY")


class ExpressionParser(PlaceholderParser, ABC):
    """The grammar of expressions; `query` comes from the class on top of this one."""

    depth = 0
    #: most levels since somebody asked
    deepest = 0

    @abstractmethod
    def query(self) -> exp.Query:
        """A SELECT or a UNION of them, for subqueries."""

    @abstractmethod
    def _call_tail(self, call: exp.Expr, start: int) -> exp.Expr:
        """What stands behind the parentheses of *call*, which begins at *start*."""

    @abstractmethod
    def _select_item(self) -> exp.Expr:
        """An expression with or without a name."""

    def condition(self) -> exp.Expr:
        """An expression with OR, AND and NOT."""
        return self._nest(self._or)

    #: the same: every place takes every expression, types are checked by the planner
    expression = condition

    def _nest(self, parse: Callable[[], T]) -> T:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels")
        try:
            return parse()
        finally:
            self.depth -= 1

    def _chain(
        self, operand: Callable[[], exp.Expr], match: Callable[[], type[exp.Expr] | None]
    ) -> exp.Expr:
        """Left-associative `operand (operator operand)*`."""
        start = self.offset
        left = operand()
        length = 0
        while (kind := match()) is not None:
            length += 1
            if length > MAX_CHAIN:
                self.fail(f"more than {MAX_CHAIN} operators in a row")
            left = kind(this=left, expression=operand())
            mark(left, start, self.previous_end)
        return left

    def _operator(self, kinds: dict[TokenType, type[exp.Expr]]) -> type[exp.Expr] | None:
        kind = kinds.get(self.token.token_type)
        if kind is not None:
            self.index += 1
        return kind

    def _or(self) -> exp.Expr:
        return self._chain(self._and, lambda: exp.Or if self.take("OR") else None)

    def _and(self) -> exp.Expr:
        return self._chain(self._not, lambda: exp.And if self.take("AND") else None)

    def _not(self) -> exp.Expr:
        start = self.offset
        if self.take("NOT") or self.take_type(TokenType.NOT):
            node = exp.Not(this=self._nest(self._not))
            mark(node, start, self.previous_end)
            return node
        return self._comparison()

    def _comparison(self) -> exp.Expr:
        start = self.offset
        left = self._bits()
        node = self._comparison_tail(left)
        if node is not left:
            mark(node, start, self.previous_end)
            if self.token.token_type in _COMPARE:
                self.fail("comparisons do not chain", hint="join them with AND, or use parentheses")
        return node

    def _comparison_tail(self, left: exp.Expr) -> exp.Expr:
        kind = self._operator(_COMPARE)
        if kind is not None:
            return kind(this=left, expression=self._bits())
        if self.take("IS"):
            negated = self.take("NOT")
            self.expect("NULL")
            test = exp.Is(this=left, expression=exp.Null())
            return exp.Not(this=test) if negated else test
        negated = self.sees("NOT") and self.word(1) in ("LIKE", "IN", "BETWEEN", "MATCH")
        self.index += negated
        word = self.word()
        if word not in ("LIKE", "MATCH", "NMATCH", "CONTAINS", "IN", "BETWEEN"):
            return left
        self.index += 1
        if word == "IN":
            node = self._in(left)
        elif word == "BETWEEN":
            low = self._bits()
            self.expect("AND")
            node = exp.Between(this=left, low=low, high=self._bits())
        else:
            kind = {"LIKE": exp.Like, "CONTAINS": nodes.ContainsKey}.get(word, nodes.MatchRegex)
            node = kind(this=left, expression=self._bits())
        return exp.Not(this=node) if negated or word == "NMATCH" else node

    def _in(self, left: exp.Expr) -> exp.Expr:
        self.open()
        if self._sees_query():
            node = exp.In(this=left, query=exp.Subquery(this=self.query()))
        else:
            node = exp.In(this=left, expressions=list(self.list_of(self.expression)))
        self.close()
        return node

    def _bits(self) -> exp.Expr:
        return self._chain(self._sums, lambda: self._operator(_BITS))

    def _sums(self) -> exp.Expr:
        return self._chain(self._products, lambda: self._operator(_SUMS))

    def _products(self) -> exp.Expr:
        return self._chain(self._unary, lambda: self._operator(_PRODUCTS))

    def _unary(self) -> exp.Expr:
        start = self.offset
        if self.take_type(TokenType.PLUS):
            return self._nest(self._unary)
        if self.take_type(TokenType.DASH):
            node: exp.Expr = exp.Neg(this=self._nest(self._unary))
        else:
            node = self._primary()
            if not self.take_type(TokenType.ARROW):
                return node
            node = exp.JSONExtract(
                this=node, expression=exp.Literal.string(self.string("a key as a string"))
            )
        mark(node, start, self.previous_end)
        return node

    def _primary(self) -> exp.Expr:
        start = self.offset
        node = self._atom()
        mark(node, start, self.previous_end)
        return node

    def _atom(self) -> exp.Expr:
        kind = self.token.token_type
        if kind in (TokenType.VAR, TokenType.IDENTIFIER):
            return self._word_or_name()
        if kind is TokenType.NUMBER:
            return self._number()
        if kind is TokenType.DOT and self.sees_type(TokenType.NUMBER, 1):
            return self._number()
        if kind is TokenType.STRING:
            return exp.Literal.string(self.string())
        if kind is TokenType.L_PAREN:
            return self._parentheses()
        if self.placeholder_tokens():
            return self.placeholder()
        self.fail("expected an expression")

    def _word_or_name(self) -> exp.Expr:
        word = self.word()
        if word == "NULL":
            self.index += 1
            return exp.Null()
        if word in ("TRUE", "FALSE"):
            self.index += 1
            return exp.Boolean(this=word == "TRUE")
        if word == "CASE":
            return self._nest(self._case)
        if self.sees_type(TokenType.L_PAREN, 1):
            return self._exists() if word == "EXISTS" else self._nest(self._call)
        if word in _MOMENTS and not self.sees_type(TokenType.DOT, 1):
            self.index += 1
            return exp.Anonymous(this=word.lower(), expressions=[])
        if word == "TIMESTAMP" and self.sees_type(TokenType.STRING, 1):
            self.index += 1
            return exp.Cast(
                this=exp.Literal.string(self.string()), to=nodes.TypeName(this="TIMESTAMP")
            )
        return self._column()

    def _exists(self) -> exp.Expr:
        self.index += 2
        node = exp.Exists(this=self.query())
        self.close()
        return node

    def _number(self) -> exp.Expr:
        if self.unit_follows():
            return nodes.DurationLiteral(this=str(self.duration()))
        text = "0." if self.take_type(TokenType.DOT) else ""
        text += self.token.text
        self.number_value()
        return exp.Literal.number(text)

    def _sees_query(self) -> bool:
        return self.word() in ("SELECT", "WITH")

    def _parentheses(self) -> exp.Expr:
        self.open()
        if self._sees_query():
            node: exp.Expr = exp.Subquery(this=self.query())
        else:
            node = exp.Paren(this=self.condition())
        self.close()
        return node

    def _column(self) -> exp.Column:
        parts = [self._identifier()]
        while len(parts) < 3 and self.take_type(TokenType.DOT):
            parts.append(self._identifier())
        return exp.Column(**dict(zip(("this", "table", "db"), reversed(parts), strict=False)))

    def _case(self) -> exp.Expr:
        self.expect("CASE")
        node = exp.Case()
        if not self.sees("WHEN"):
            node.set("this", self.condition())
        while self.take("WHEN"):
            test = self.condition()
            self.expect("THEN")
            node.append("ifs", exp.If(this=test, true=self.condition()))
        if not node.args.get("ifs"):
            self.fail("expected WHEN")
        if self.take("ELSE"):
            node.set("default", self.condition())
        self.expect("END")
        return node

    def _call(self) -> exp.Expr:
        word = self.word()
        if word == "CAST":
            return self._cast()
        if word in RESERVED and word not in _MOMENTS:
            self.fail(f"{word} is no function here")
        name = self.token.text.lower()
        start = self.offset
        self.index += 2
        if self.take_type(TokenType.R_PAREN):
            node: exp.Expr = exp.Anonymous(
                this=name, expressions=[exp.Star()] if name == "count" else []
            )
            return self._call_tail(node, start)
        if name == "trim":
            node = self._trim()
        else:
            node = exp.Anonymous(this=name, expressions=self._arguments(name))
        self.close()
        return self._call_tail(node, start)

    def _arguments(self, name: str) -> list[exp.Expr]:
        if self.take("DISTINCT"):
            return [exp.Distinct(expressions=list(self.list_of(self.expression)))]
        if name == "position":
            return self._position_arguments()
        first = self._star() or self.condition()
        arguments = [first]
        if name in ("substr", "substring") and self.take("FROM"):
            arguments.append(self.expression())
            if self.take("FOR"):
                arguments.append(self.expression())
            return arguments
        while self.take_type(TokenType.COMMA):
            if name == nodes.COLS:
                arguments.append(self._select_item())
            else:
                arguments.append(self._star() or self.condition())
        return arguments

    def _position_arguments(self) -> list[exp.Expr]:
        """Read `x IN y` or `x, y`; IN is no operator here."""
        first = self._star() or self._bits()
        if self.take("IN"):
            return [first, self.expression()]
        arguments = [first]
        while self.take_type(TokenType.COMMA):
            arguments.append(self._star() or self.condition())
        return arguments

    def _trim(self) -> exp.Expr:
        """`trim(x)`, `trim([LEADING|TRAILING|BOTH] [c FROM] x)`; the plain form is an ordinary
        call.
        """
        side = (
            self.one_of((self.word(),), "a side")
            if self.word() in ("LEADING", "TRAILING", "BOTH")
            else None
        )
        what = None if self.sees("FROM") else self.condition()
        if self.take("FROM"):
            return exp.Trim(this=self.condition(), expression=what, position=side)
        if side:
            return exp.Trim(this=what, position=side)
        assert what is not None  # without FROM an expression was read
        return exp.Anonymous(this="trim", expressions=[what])

    def _cast(self) -> exp.Expr:
        self.index += 2
        node = exp.Cast(this=self.condition())
        self.expect("AS")
        node.set(
            "to", nodes.TypeName(this=str(self.column_type(default_length=0)).replace("(0)", ""))
        )
        self.close()
        return nodes.BinaryLiteral.from_cast(node) or node

    def _identifier(self) -> exp.Identifier:
        start = self.offset
        node = exp.Identifier(this=self.identifier(), quoted=False)
        mark(node, start, self.previous_end)
        return node

    def _star(self) -> exp.Expr | None:
        """`*` or `t.*`"""
        if self.take_type(TokenType.STAR):
            return exp.Star()
        if self.sees_type(TokenType.DOT, 1) and self.sees_type(TokenType.STAR, 2):
            table = self._identifier()
            self.index += 2
            return exp.Column(this=exp.Star(), table=table)
        return None

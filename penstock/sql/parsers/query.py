"""SELECT: expressions, joins, subqueries, unions, and the window clauses. Builds sqlglot trees.

Comparisons do not chain (`a = b = c` is refused), so a tree has one text and a text one tree. What the dialect does
not have (WITH, OVER, placeholders, arrays) is a syntax error here, not a surprise in a later room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokens import TokenType

from penstock.sql import nodes
from penstock.sql.parsers.cursor import Cursor
from penstock.sql.source import mark
from penstock.sql.words import RESERVED

#: Nested parentheses, calls and subqueries; deeper text is refused before Python's stack is in danger.
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
_BITS: dict[TokenType, type[exp.Expr]] = {TokenType.AMP: exp.BitwiseAnd, TokenType.PIPE: exp.BitwiseOr}
_SUMS: dict[TokenType, type[exp.Expr]] = {TokenType.PLUS: exp.Add, TokenType.DASH: exp.Sub}
_PRODUCTS: dict[TokenType, type[exp.Expr]] = {TokenType.STAR: exp.Mul, TokenType.SLASH: exp.Div, TokenType.MOD: exp.Mod}
T = TypeVar("T")
_FILL_MODES = ("NONE", "NULL", "NULL_F", "VALUE", "VALUE_F", "PREV", "NEXT", "LINEAR")
#: Kinds of joins that must not be taken for an alias; which of them exist, `_join` says.
_JOINS = ("ASOF", "SEMI", "ANTI", "WINDOW")
#: Words that are functions of no arguments even without parentheses.
_MOMENTS = ("NOW", "TODAY")


class QueryParser(Cursor):
    """Cursor plus the grammar of queries and expressions."""

    depth = 0

    # -- queries ---------------------------------------------------------------------------------------------------

    def query(self) -> exp.Query:
        """`SELECT … [UNION [ALL] SELECT …]… [ORDER BY …] [LIMIT …]`"""
        return self._nested(self._query)

    def _query(self) -> exp.Query:
        left: exp.Query = self._query_term()
        count = 0
        while self.take("UNION"):
            count += 1
            if count > MAX_DEPTH:
                self.fail(f"more than {MAX_DEPTH} queries in one UNION")
            distinct = not self.take("ALL")
            left = exp.Union(this=left, expression=self._query_term(), distinct=distinct)
        if isinstance(left, exp.Select | exp.Union):
            self._tail(left)
        return left

    def _query_term(self) -> exp.Query:
        if self.sees_type(TokenType.L_PAREN):
            self.open()
            inner = self.query()
            self.close()
            return exp.Subquery(this=inner)
        return self._select()

    def _select(self) -> exp.Select:
        start = self.offset
        self.expect("SELECT")
        distinct = self.take("DISTINCT")
        if not distinct:
            self.take("ALL")
        select = exp.Select(expressions=list(self.listed(self._select_item)))
        if distinct:
            select.set("distinct", exp.Distinct())
        if self.take("FROM"):
            self._from(select)
        if self.take("OPEN", "WINDOWS"):
            select.set("open_windows", exp.Boolean(this=True))
        if self.take("WHERE"):
            select.set("where", exp.Where(this=self.condition()))
        if self.take("PARTITION"):
            self.expect("BY")
            select.set("partition_by", nodes.PartitionBy(expressions=list(self.listed(self._partition_item))))
        window = self._window()
        if window:
            select.set("window", window)
        if self.sees("FILL"):
            select.set("fill", self._fill())
        if self.take("GROUP"):
            self.expect("BY")
            select.set("group", exp.Group(expressions=list(self.listed(self.expression))))
        if self.take("HAVING"):
            select.set("having", exp.Having(this=self.condition()))
        self._refuse_misplaced(select)
        mark(select, start, self.previous_end)
        return select

    def _refuse_misplaced(self, select: exp.Select) -> None:
        """A clause that stands behind its place, or twice, gets a message of its own."""
        word = self.word()
        given = {"WHERE": "where", "PARTITION": "partition_by", "GROUP": "group", "HAVING": "having", "FILL": "fill"}
        key = given.get(word) or ("window" if self._sees_window() else None)
        if key:
            twice = select.args.get(key) is not None
            self.fail(
                f"{word} is given twice" if twice else f"{word} stands in the wrong place",
                hint="the order is SELECT … FROM … WHERE … PARTITION BY … window … FILL … GROUP BY … HAVING … ORDER BY … LIMIT …",
            )

    def _tail(self, query: exp.Query) -> None:
        """ORDER BY, SLIMIT, SOFFSET, LIMIT [a,] b, OFFSET."""
        if self.take("ORDER"):
            self.expect("BY")
            query.set("order", exp.Order(expressions=list(self.listed(self._order_item))))
        if isinstance(query, exp.Select):
            for word in ("SLIMIT", "SOFFSET"):
                if self.take(word):
                    query.set(word.lower(), self._count())
        if self.take("LIMIT"):
            first = self._count()
            if self.take_type(TokenType.COMMA):
                query.set("offset", exp.Offset(expression=first))
                first = self._count()
            query.set("limit", exp.Limit(expression=first))
            if not query.args.get("offset") and self.take("OFFSET"):
                query.set("offset", exp.Offset(expression=self._count()))

    def _count(self) -> exp.Literal:
        return exp.Literal.number(self.integer())

    def _order_item(self) -> exp.Ordered:
        item = exp.Ordered(this=self.expression())
        if self.take("DESC"):
            item.set("desc", True)
        else:
            self.take("ASC")
        if self.take("NULLS"):
            item.set("nulls_first", self.one_of(("FIRST", "LAST"), "FIRST or LAST") == "FIRST")
        return item

    def _select_item(self) -> exp.Expr:
        """An expression with or without a name; `meta['sql']` is its text as written (column names come from it)."""
        start = self.offset
        item = self._star() or self.condition()
        text = self.source.text[start : self.previous_end]
        alias = self._alias()
        if alias:
            item = exp.Alias(this=item, alias=alias)
        mark(item, start, self.previous_end)
        item.meta["sql"] = text
        return item

    def _star(self) -> exp.Expr | None:
        """`*` or `t.*`"""
        if self.take_type(TokenType.STAR):
            return exp.Star()
        if self.sees_type(TokenType.DOT, 1) and self.sees_type(TokenType.STAR, 2):
            table = self._identifier()
            self.index += 2
            return exp.Column(this=exp.Star(), table=table)
        return None

    def _partition_item(self) -> exp.Expr:
        start = self.offset
        item = self.condition()
        text = self.source.text[start : self.previous_end]
        alias = self._alias()
        if alias:
            item = exp.Alias(this=item, alias=alias)
            mark(item, start, self.previous_end)
        item.meta["sql"] = text
        return item

    def _alias(self) -> exp.Identifier | None:
        """`AS name`, `name`, or a name written as a string; a bare name must not look like the next clause."""
        if self.take("AS"):
            if self.sees_type(TokenType.STRING):
                return exp.to_identifier(self.string(), quoted=True)
            return self._identifier()
        if self.sees_type(TokenType.IDENTIFIER):
            return self._identifier()
        word = self.word()
        clause = self._sees_window() or self.sees("OPEN", "WINDOWS") or (word in _JOINS and self.word(1) == "JOIN")
        return self._identifier() if word and word not in RESERVED and not clause else None

    def _identifier(self) -> exp.Identifier:
        start = self.offset
        node = exp.Identifier(this=self.identifier(), quoted=False)
        mark(node, start, self.previous_end)
        return node

    # -- FROM ------------------------------------------------------------------------------------------------------

    def _from(self, select: exp.Select) -> None:
        select.set("from_", exp.From(this=self._table()))
        while len(select.args.get("joins") or []) < MAX_DEPTH:
            join = self._join()
            if join is None:
                return
            select.append("joins", join)
        self.fail(f"more than {MAX_DEPTH} tables in one FROM")

    def _join(self) -> exp.Join | None:
        if self.take_type(TokenType.COMMA):
            return exp.Join(this=self._table())
        start = self.index
        method, side, kind = "", "", ""
        if self.word() in ("LEFT", "RIGHT", "FULL"):
            side = self.one_of(("LEFT", "RIGHT", "FULL"), "a join")
            if self.word() in ("OUTER", "SEMI", "ANTI", "ASOF"):
                word = self.one_of(("OUTER", "SEMI", "ANTI", "ASOF"), "a join")
                method, kind = ("ASOF", "") if word == "ASOF" else ("", word)
        elif self.word() in ("INNER", "CROSS"):
            kind = self.one_of(("INNER", "CROSS"), "a join")
        if not self.take("JOIN"):
            if self.index != start:
                self.fail("expected JOIN")
            return None
        join = exp.Join(this=self._table())
        for key, value in (("method", method), ("side", side), ("kind", kind)):
            if value:
                join.set(key, value)
        if kind == "CROSS":
            return join
        if self.take("USING"):
            join.set("using", list(self.wrapped(self._identifier)))
        else:
            self.expect("ON")
            join.set("on", self.condition())
        return join

    def _table(self) -> exp.Expr:
        start = self.offset
        if self.sees_type(TokenType.L_PAREN):
            self.open()
            inner = self.query()
            self.close()
            node: exp.Expr = exp.Subquery(this=inner)
        else:
            first = self._identifier()
            if self.take_type(TokenType.DOT):
                node = exp.Table(this=self._identifier(), db=first)
            else:
                node = exp.Table(this=first)
        alias = self._alias()
        if alias:
            node.set("alias", exp.TableAlias(this=alias))
        mark(node, start, self.previous_end)
        return node

    # -- windows ---------------------------------------------------------------------------------------------------

    def _sees_window(self) -> bool:
        word = self.word()
        if word in ("INTERVAL", "SESSION", "STATE_WINDOW", "COUNT_WINDOW", "SLIDING", "FILL"):
            return self.sees_type(TokenType.L_PAREN, 1)
        return word == "EVENT_WINDOW"

    def _window(self) -> nodes.WindowClause | None:
        parsers: dict[str, Callable[[], nodes.WindowClause]] = {
            "INTERVAL": self._interval,
            "SESSION": self._session,
            "STATE_WINDOW": self._state,
            "EVENT_WINDOW": self._event,
            "COUNT_WINDOW": self._count_window,
        }
        parse = parsers.get(self.word())
        if parse is None:
            if self.sees("SLIDING"):
                self.fail("SLIDING needs INTERVAL before it")
            return None
        start = self.offset
        self.index += 1
        node = parse()
        mark(node, start, self.previous_end)
        return node

    def _length(self) -> nodes.DurationLiteral:
        start = self.offset
        node = nodes.DurationLiteral(this=str(self.duration()))
        mark(node, start, self.previous_end)
        return node

    def _in_parentheses(self) -> nodes.DurationLiteral:
        self.open()
        node = self._length()
        self.close()
        return node

    def _interval(self) -> nodes.WindowClause:
        self.open()
        node = nodes.IntervalWindow(size=self._length())
        if self.take_type(TokenType.COMMA):
            node.set("offset", exp.Var(this="AUTO") if self.take("AUTO") else self._length())
        self.close()
        if self.take("SLIDING"):
            node.set("sliding", self._in_parentheses())
        return node

    def _session(self) -> nodes.WindowClause:
        self.open()
        ts = self.expression()
        self.expect_type(TokenType.COMMA, '","')
        node = nodes.SessionWindow(ts=ts, tol=self._length())
        self.close()
        return node

    def _state(self) -> nodes.WindowClause:
        self.open()
        node = nodes.StateWindow(expr=self.condition())
        self.close()
        return self._true_for(node)

    def _event(self) -> nodes.WindowClause:
        self.expect("START", "WITH")
        start = self.condition()
        self.expect("END", "WITH")
        return self._true_for(nodes.EventWindow(start=start, end=self.condition()))

    def _true_for(self, node: nodes.WindowClause) -> nodes.WindowClause:
        if self.take("TRUE_FOR"):
            node.set("true_for", self._in_parentheses())
        return node

    def _count_window(self) -> nodes.WindowClause:
        self.open()
        node = nodes.CountWindow(size=self._signed())
        if self.take_type(TokenType.COMMA):
            node.set("sliding", self._signed())
        self.close()
        return node

    def _signed(self) -> exp.Expr:
        """A whole number that the planner checks (so that 0 and -1 get its message)."""
        start = self.offset
        minus = self.take_type(TokenType.DASH)
        node: exp.Expr = exp.Literal.number(self.integer())
        node = exp.Neg(this=node) if minus else node
        mark(node, start, self.previous_end)
        return node

    def _fill(self) -> nodes.Fill:
        start = self.offset
        self.expect("FILL")
        self.open()
        mode = self.one_of(_FILL_MODES, "a FILL mode")
        values: list[exp.Expr] = []
        if mode.startswith("VALUE"):
            while self.take_type(TokenType.COMMA):
                values.append(self.condition())
            if not values:
                self.fail(f"FILL({mode}) needs values")
        self.close()
        node = nodes.Fill(mode=mode, values=values or None)
        mark(node, start, self.previous_end)
        return node

    # -- expressions -----------------------------------------------------------------------------------------------

    def condition(self) -> exp.Expr:
        """An expression with OR, AND and NOT."""
        return self._nested(self._or)

    #: the same: every place takes every expression, types are checked by the planner
    expression = condition

    def _nested(self, parse: Callable[[], T]) -> T:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels")
        try:
            return parse()
        finally:
            self.depth -= 1

    def _chain(self, operand: Callable[[], exp.Expr], match: Callable[[], type[exp.Expr] | None]) -> exp.Expr:
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
            node = exp.Not(this=self._nested(self._not))
            mark(node, start, self.previous_end)
            return node
        return self._comparison()

    def _comparison(self) -> exp.Expr:
        start = self.offset
        left = self._bits()
        node = self._compared(left)
        if node is not left:
            mark(node, start, self.previous_end)
            if self.token.token_type in _COMPARE:
                self.fail("comparisons do not chain", hint="join them with AND, or use parentheses")
        return node

    def _compared(self, left: exp.Expr) -> exp.Expr:
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
        if self.sees("SELECT"):
            node = exp.In(this=left, query=exp.Subquery(this=self.query()))
        else:
            node = exp.In(this=left, expressions=list(self.listed(self.expression)))
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
            return self._nested(self._unary)
        if self.take_type(TokenType.DASH):
            node: exp.Expr = exp.Neg(this=self._nested(self._unary))
        else:
            node = self._primary()
            if not self.take_type(TokenType.ARROW):
                return node
            node = exp.JSONExtract(this=node, expression=exp.Literal.string(self.string("a key as a string")))
        mark(node, start, self.previous_end)
        return node

    def _primary(self) -> exp.Expr:
        start = self.offset
        node = self._atom()
        mark(node, start, self.previous_end)
        return node

    def _atom(self) -> exp.Expr:
        kind = self.token.token_type
        if kind is TokenType.NUMBER or (kind is TokenType.DOT and self.sees_type(TokenType.NUMBER, 1)):
            return self._number()
        if kind is TokenType.STRING:
            return exp.Literal.string(self.string())
        if kind is TokenType.L_PAREN:
            return self._parenthesised()
        if kind not in (TokenType.VAR, TokenType.IDENTIFIER):
            self.fail("expected an expression")
        word = self.word()
        if word == "NULL":
            self.index += 1
            return exp.Null()
        if word in ("TRUE", "FALSE"):
            self.index += 1
            return exp.Boolean(this=word == "TRUE")
        if word == "CASE":
            return self._nested(self._case)
        if word == "EXISTS" and self.sees_type(TokenType.L_PAREN, 1):
            self.index += 2
            node = exp.Exists(this=self.query())
            self.close()
            return node
        if self.sees_type(TokenType.L_PAREN, 1):
            return self._nested(self._call)
        if word in _MOMENTS and not self.sees_type(TokenType.DOT, 1):
            self.index += 1
            return exp.Anonymous(this=word.lower(), expressions=[])
        if word == "TIMESTAMP" and self.sees_type(TokenType.STRING, 1):
            self.index += 1
            return exp.Cast(this=exp.Literal.string(self.string()), to=nodes.TypeName(this="TIMESTAMP"))
        return self._column()

    def _number(self) -> exp.Expr:
        if self.unit_follows():
            return nodes.DurationLiteral(this=str(self.duration()))
        text = "0." if self.take_type(TokenType.DOT) else ""
        text += self.token.text
        self.number_value()
        return exp.Literal.number(text)

    def _parenthesised(self) -> exp.Expr:
        self.open()
        if self.sees("SELECT"):
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
        self.index += 2
        if self.take_type(TokenType.R_PAREN):
            return exp.Anonymous(this=name, expressions=[])
        if name == "trim":
            node = self._trim()
        else:
            node = exp.Anonymous(this=name, expressions=self._arguments(name))
        self.close()
        if self.sees("OVER"):
            self.fail("window functions with OVER are not part of the dialect", hint="use INTERVAL, SESSION, … windows")
        return node

    def _arguments(self, name: str) -> list[exp.Expr]:
        if self.take("DISTINCT"):
            return [exp.Distinct(expressions=list(self.listed(self.expression)))]
        first = self._star() or (self._bits() if name == "position" else self.condition())
        arguments = [first]
        if name == "position" and self.take("IN"):
            arguments.append(self.expression())
        elif name in ("substr", "substring") and self.take("FROM"):
            arguments.append(self.expression())
            if self.take("FOR"):
                arguments.append(self.expression())
        else:
            while self.take_type(TokenType.COMMA):
                arguments.append(self._star() or self.condition())
        return arguments

    def _trim(self) -> exp.Expr:
        """`trim(x)`, `trim([LEADING|TRAILING|BOTH] [c FROM] x)`; the plain form is an ordinary call."""
        side = self.one_of((self.word(),), "a side") if self.word() in ("LEADING", "TRAILING", "BOTH") else None
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
        node.set("to", nodes.TypeName(this=str(self.column_type(default_length=0)).replace("(0)", "")))
        self.close()
        return node

"""SELECT: joins, subqueries, unions, and the window clauses, as sqlglot trees.

What the dialect does not have (WITH, OVER, placeholders, arrays) is a syntax error here, not a
surprise in a later room.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql import nodes
from penstock.sql.parsers.expression import MAX_DEPTH, ExpressionParser
from penstock.sql.source import mark
from penstock.sql.words import RESERVED

_FILL_MODES = ("NONE", "NULL", "NULL_F", "VALUE", "VALUE_F", "PREV", "NEXT", "LINEAR")
#: Kinds of joins that must not be taken for an alias; which of them exist, `_join` says.
_JOINS = ("ASOF", "SEMI", "ANTI", "WINDOW")


class QueryParser(ExpressionParser):
    """The grammar of queries on top of expressions."""

    # ---------------------------------------------------------------- queries

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
        table_window = None
        if self.take("FROM"):
            if self._sees_table_window():
                table_window = self._table_window(select)
            else:
                self._from(select)
        if self.take("OPEN", "WINDOWS"):
            select.set("open_windows", exp.Boolean(this=True))
        if self.take("WHERE"):
            select.set("where", exp.Where(this=self.condition()))
        if self.take("PARTITION"):
            self.expect("BY")
            select.set(
                "partition_by",
                nodes.PartitionBy(expressions=list(self.listed(self._partition_item))),
            )
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
        if table_window is not None:
            self._apply_table_window(select, table_window)
        mark(select, start, self.previous_end)
        return select

    def _refuse_misplaced(self, select: exp.Select) -> None:
        """A clause that stands behind its place, or twice, gets a message of its own."""
        word = self.word()
        given = {
            "WHERE": "where",
            "PARTITION": "partition_by",
            "GROUP": "group",
            "HAVING": "having",
            "FILL": "fill",
        }
        key = given.get(word) or ("window" if self._sees_window() else None)
        if key:
            twice = select.args.get(key) is not None
            self.fail(
                f"{word} is given twice" if twice else f"{word} stands in the wrong place",
                hint=(
                    "the order is SELECT … FROM … WHERE … PARTITION BY … window … FILL … GROUP BY …"
                    " HAVING … ORDER BY … LIMIT …"
                ),
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

    def _count(self) -> exp.Expr:
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
        """An expression with or without a name; `meta['sql']` is its text as written (column names
        come from it).
        """
        start = self.offset
        item = self._star() or self.condition()
        text = self.source.text[start : self.previous_end]
        alias = self._alias()
        if alias:
            item = exp.Alias(this=item, alias=alias)
        mark(item, start, self.previous_end)
        item.meta["sql"] = text
        return item

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
        """`AS name`, `name`, or a name written as a string; a bare name must not look like the next
        clause.
        """
        if self.take("AS"):
            if self.sees_type(TokenType.STRING):
                if not self.token.text:
                    self.fail("a name cannot be empty")
                return exp.Identifier(this=self.string(), quoted=False)
            return self._identifier()
        if self.sees_type(TokenType.IDENTIFIER):
            return self._identifier()
        word = self.word()
        clause = (
            self._sees_window()
            or self.sees("OPEN", "WINDOWS")
            or (word in _JOINS and self.word(1) == "JOIN")
        )
        return self._identifier() if word and word not in RESERVED and not clause else None

    # ---------------------------------------------------------------- windows as table functions

    def _sees_table_window(self) -> bool:
        return self.word() in ("TUMBLE", "HOP", "SESSION") and self.sees_type(TokenType.L_PAREN, 1)

    def _table_window(self, select: exp.Select) -> nodes.WindowClause:
        """`tumble(table[, time], size)`, `hop(table[, time], step, size)`, `session(table[, time],
        gap)`.
        """
        start = self.offset
        kind = self.word()
        self.index += 2
        node = self._named_table()
        mark(node, start, self.previous_end)
        self.expect_type(TokenType.COMMA, '","')
        ts: exp.Expr | None = None
        if not self.sees_duration() and not self.sees_type(TokenType.STRING):
            ts = self.expression()
            self.expect_type(TokenType.COMMA, '","')
        first = self._length()
        second = self._length() if self.take_type(TokenType.COMMA) else None
        self.close()
        if (kind == "HOP") != (second is not None):
            self.fail(
                "hop has a step and a size" if kind == "HOP" else f"{kind.lower()} has one length",
                index=self.index - 1,
            )
        alias = self._alias()
        if alias:
            node.set("alias", exp.TableAlias(this=alias))
        select.set("from_", exp.From(this=node))
        window: nodes.WindowClause
        if kind == "SESSION":
            column = ts or exp.Column(this=exp.to_identifier("_tp_time"))
            window = nodes.SessionWindow(ts=column, tol=first)
        elif second is not None:
            window = nodes.IntervalWindow(size=second, sliding=first)
        else:
            window = nodes.IntervalWindow(size=first)
        mark(window, start, self.previous_end)
        return window

    def _apply_table_window(self, select: exp.Select, window: nodes.WindowClause) -> None:
        """`window_start` and `window_end` are our pseudo-columns; what else is in GROUP BY are the
        partitions.
        """
        if select.args.get("window") is not None or select.args.get("partition_by") is not None:
            self.fail(
                "there are two windows",
                hint="write the table function, or the window clause",
                index=self.index - 1,
            )
        names = {"window_start": "_wstart", "window_end": "_wend"}
        group = select.args.pop("group", None)
        keys = [
            e
            for e in (group.expressions if group is not None else [])
            if e.name.lower() not in names
        ]
        for key in keys:
            key.meta.setdefault("sql", key.sql(dialect="penstock"))
        if keys:
            select.set("partition_by", nodes.PartitionBy(expressions=keys))
        select.set("window", window)
        for column in list(select.find_all(exp.Column)):
            if column.name.lower() in names:
                if column.parent is select and not isinstance(column.this, exp.Star):
                    text = column.name
                    column.set("this", exp.to_identifier(names[text.lower()]))
                    position = next(i for i, e in enumerate(select.expressions) if e is column)
                    alias = exp.Alias(this=column.copy(), alias=exp.to_identifier(text))
                    alias.meta.update(column.meta)
                    select.expressions[position] = alias
                    alias.parent = select
                    alias.arg_key = "expressions"
                else:
                    column.set("this", exp.to_identifier(names[column.name.lower()]))

    # ---------------------------------------------------------------- FROM

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
        method = ""
        side = ""
        kind = ""
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
            node = self._named_table()
        alias = self._alias()
        if alias:
            node.set("alias", exp.TableAlias(this=alias))
        mark(node, start, self.previous_end)
        return node

    def _named_table(self) -> exp.Table:
        """A table's name; in `table(x)` it means what x holds now, which is what a SELECT reads in
        any case.
        """
        bounded = self.sees("TABLE") and self.sees_type(TokenType.L_PAREN, 1)
        if bounded:
            self.index += 2
        first = self._identifier()
        node = (
            exp.Table(this=self._identifier(), db=first)
            if self.take_type(TokenType.DOT)
            else exp.Table(this=first)
        )
        if bounded:
            self.close()
        return node

    # ---------------------------------------------------------------- windows

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

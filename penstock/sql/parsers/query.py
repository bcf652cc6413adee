"""SELECT: joins, subqueries, unions and windows as table functions, as sqlglot trees.

Whatever the dialect does not have (WITH RECURSIVE, DISTINCT ON, arrays) is a syntax error here, not
a surprise later.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql import nodes
from penstock.sql.parsers.chosen_columns import split_columns
from penstock.sql.parsers.expression import MAX_DEPTH
from penstock.sql.parsers.sets import SetParser
from penstock.sql.source import mark
from penstock.sql.words import RESERVED

#: names of `window_start` and `window_end` in a plan
_PSEUDO_COLUMNS = {"window_start": "_wstart", "window_end": "_wend"}
#: Kinds of joins that must not be taken for an alias; `_join` says which of them exist.
_JOINS = ("ASOF", "SEMI", "ANTI", "WINDOW")
#: joins by time
_METHODS = ("ASOF", "WINDOW")


class QueryParser(SetParser):
    """The grammar of queries on top of expressions, windows and WITH."""

    # ---------------------------------------------------------------- queries

    def query(self) -> exp.Query:
        """`[WITH name AS (…), …] SELECT … [UNION | EXCEPT | INTERSECT [ALL] SELECT …]… [ORDER BY …]
        [LIMIT …]`
        """
        outer = self._named
        try:
            return self._nest(self._query)
        finally:
            self._named = outer

    def _query(self) -> exp.Query:
        if self.take("WITH"):
            self._common_tables()
        left = self._sets(self._query_term)
        if isinstance(left, exp.Select | exp.SetOperation):
            self._tail(left)
        for part in left.walk(prune=lambda n: isinstance(n, exp.Select)):
            if isinstance(part, exp.Select):
                self._write_out_windows(part, part.args.pop("windows", {}))
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
        if distinct and self.sees("ON"):
            self.fail(
                "there is no DISTINCT ON",
                hint="write QUALIFY row_number() OVER (PARTITION BY … ORDER BY …) = 1",
            )
        if not distinct:
            self.take("ALL")
        tags = exp.Boolean(this=True) if self.take("TAGS") else None
        listed = self.list_of(self._list_item)
        select = exp.Select(expressions=[one for item in listed for one in item], tags=tags)
        if distinct:
            select.set("distinct", exp.Distinct())
        self._behind_list(select, start)
        return select

    def _behind_list(self, select: exp.Select, start: int) -> None:
        """Read what follows the list of *select*, which begins at *start*."""
        table_window = self._from(select) if self.take("FROM") else None
        self._clauses(select)
        self._refuse_misplaced(select)
        if table_window is not None:
            self._apply_table_window(select, table_window)
        mark(select, start, self.previous_end)

    def _clauses(self, select: exp.Select) -> None:
        """Read what stands between FROM and ORDER BY."""
        if self.take("OPEN", "WINDOWS"):
            select.set("open_windows", exp.Boolean(this=True))
        if self.take("WHERE"):
            select.set("where", exp.Where(this=self.condition()))
        if self.take("PARTITION"):
            self.expect("BY")
            select.set(
                "partition_by",
                nodes.PartitionBy(expressions=list(self.list_of(self._partition_item))),
            )
        self._time_clauses(select)
        if self.take("GROUP"):
            self.expect("BY")
            select.set("group", exp.Group(expressions=list(self.list_of(self.expression))))
        if self.take("HAVING"):
            select.set("having", exp.Having(this=self.condition()))
        if self._sees_window_names():
            select.args["windows"] = self._window_names()
        if self.take("QUALIFY"):
            select.set("qualify", exp.Qualify(this=self.condition()))

    def _time_clauses(self, select: exp.Select) -> None:
        """Read a window or RANGE, and FILL."""
        window = self._window()
        if window:
            select.set("window", window)
        ranged = self.sees("RANGE") and self.sees_type(TokenType.L_PAREN, 1)
        if ranged:
            select.set("range", self._range())
        if self.sees("FILL"):
            select.set("fill", self._fill(ranged=ranged))

    def _refuse_misplaced(self, select: exp.Select) -> None:
        """Refuse a clause that stands behind its place, or twice, with a message of its own."""
        word = self.word()
        given = {
            "WHERE": "where",
            "PARTITION": "partition_by",
            "GROUP": "group",
            "HAVING": "having",
            "FILL": "fill",
            "QUALIFY": "qualify",
        }
        key = given.get(word)
        if key is None and self._sees_window():
            key = "range" if word in ("RANGE", "EVERY") else "window"
        if key:
            twice = select.args.get(key) is not None
            self.fail(
                f"{word} is given twice" if twice else f"{word} stands in the wrong place",
                hint=(
                    "the order is SELECT … FROM … WHERE … PARTITION BY … window … FILL … GROUP BY …"
                    " HAVING … QUALIFY … ORDER BY … LIMIT …"
                ),
            )

    def _tail(self, query: exp.Query) -> None:
        """ORDER BY, SLIMIT, SOFFSET, LIMIT [a,] b, OFFSET."""
        if self.take("ORDER"):
            self.expect("BY")
            query.set("order", exp.Order(expressions=list(self.list_of(self._order_item))))
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
        """Read a whole number, or the placeholder of one."""
        if self.placeholder_tokens():
            return self.placeholder()
        start = self.offset
        node = exp.Literal.number(self.integer())
        mark(node, start, self.previous_end)
        return node

    def _list_item(self) -> list[exp.Expr]:
        """Read an item of a select list; cols() of several columns becomes several."""

        def fail(message: str, hint: str) -> NoReturn:
            self.fail(message, hint=hint, index=self.index - 1)

        return split_columns(self._select_item(), fail)

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
        """Read `AS name`, `name`, or a name written as a string, if there is one."""
        if self.take("AS"):
            if self.sees_type(TokenType.STRING):
                if not self.token.text:
                    self.fail("a name cannot be empty")
                return exp.Identifier(this=self.string(), quoted=False)
            return self._identifier()
        if self.sees_type(TokenType.IDENTIFIER) or self._sees_bare_alias():
            return self._identifier()
        return None

    def _sees_bare_alias(self) -> bool:
        """Return True at a word that is neither reserved nor the start of the next clause."""
        word = self.word()
        return bool(word) and word not in RESERVED and not self._sees_clause(word)

    def _sees_clause(self, word: str) -> bool:
        """Tell if *word*, which is not reserved, begins the next clause."""
        if word in _JOINS and self.word(1) == "JOIN":
            return True
        if word == "WINDOW_OFFSET" and self.sees_type(TokenType.L_PAREN, 1):
            return True
        window = self._sees_window() or self._sees_window_names() or self.sees("OPEN", "WINDOWS")
        return window or word == "QUALIFY" or self._sees_set()

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
        node = self._write_out(self._table_name())
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
        self._name_table(node)
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
        """Make *window* the window of *select*: `window_start` and `window_end` become our
        pseudo-columns, the rest of GROUP BY the partition keys.
        """
        if select.args.get("window") is not None or select.args.get("partition_by") is not None:
            self.fail(
                "there are two windows",
                hint="write the table function, or the window clause",
                index=self.index - 1,
            )
        group = select.args.pop("group", None)
        expressions = group.expressions if group is not None else []
        keys = [e for e in expressions if e.name.lower() not in _PSEUDO_COLUMNS]
        for key in keys:
            key.meta.setdefault("sql", key.sql(dialect="penstock"))
        if keys:
            select.set("partition_by", nodes.PartitionBy(expressions=keys))
        select.set("window", window)
        for column in list(select.find_all(exp.Column)):
            if column.name.lower() in _PSEUDO_COLUMNS:
                _rename_pseudo_column(select, column)

    # ---------------------------------------------------------------- FROM

    def _from(self, select: exp.Select) -> nodes.WindowClause | None:
        """Read tables and joins, or a window as a table function, which is returned."""
        if self._sees_table_window():
            return self._table_window(select)
        select.set("from_", exp.From(this=self._table()))
        while len(select.args.get("joins") or []) < MAX_DEPTH:
            join = self._join()
            if join is None:
                return None
            select.append("joins", join)
        self.fail(f"more than {MAX_DEPTH} tables in one FROM", index=self.index - 1)

    def _join(self) -> exp.Join | None:
        if self.take_type(TokenType.COMMA):
            return exp.Join(this=self._table())
        start = self.index
        words = self._join_words()
        if not self.take("JOIN"):
            if self.index != start:
                self.fail("expected JOIN")
            return None
        join = exp.Join(this=self._table())
        for key, word in words.items():
            join.set(key, word)
        if words.get("kind") == "CROSS":
            return join
        by_window = words.get("method") == "WINDOW"
        if self.take("USING"):
            join.set("using", list(self.list_in_parentheses(self._identifier)))
        elif self.take("ON"):
            join.set("on", self.condition())
        elif not by_window:
            self.expect("ON")
        if by_window:
            join.set("window_offset", self._window_offset())
        join.set("join_limit", self._join_limit(words.get("method", "")))
        return join

    def _join_words(self) -> dict[str, str]:
        """Read the words before JOIN, by what sqlglot calls them."""
        if self.word() in ("INNER", "CROSS"):
            return {"kind": self.one_of(("INNER", "CROSS"), "a join")}
        if self.word() not in ("LEFT", "RIGHT", "FULL"):
            return {}
        words = {"side": self.one_of(("LEFT", "RIGHT", "FULL"), "a join")}
        if self.word() in ("OUTER", "SEMI", "ANTI", *_METHODS):
            word = self.one_of(("OUTER", "SEMI", "ANTI", *_METHODS), "a join")
            words["method" if word in _METHODS else "kind"] = word
            if word in _METHODS and words["side"] == "FULL":
                self.fail(f"there is no FULL {word} JOIN", hint=f"write LEFT {word} JOIN")
        return words

    def _table(self) -> exp.Expr:
        start = self.offset
        if self.sees_type(TokenType.L_PAREN):
            self.open()
            inner = self.query()
            self.close()
            node: exp.Expr = exp.Subquery(this=inner)
        else:
            node = self._write_out(self._table_name())
        self._name_table(node)
        mark(node, start, self.previous_end)
        return node

    def _name_table(self, node: exp.Expr) -> None:
        """Read `[AS] name [(column, …)]` behind a table or a subquery, if it is there."""
        alias = self._alias()
        if not alias:
            return
        columns = []
        if isinstance(node, exp.Subquery):
            given = node.args.get("alias")
            columns = list(given.columns) if given is not None else []
            if self.sees_type(TokenType.L_PAREN):
                columns = list(self.list_in_parentheses(self._identifier))
        node.set("alias", exp.TableAlias(this=alias, columns=columns or None))

    def _table_name(self) -> exp.Table:
        """Read a table's name. `table(x)` means the rows that x holds now, which a SELECT reads in
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


def _rename_pseudo_column(select: exp.Select, column: exp.Column) -> None:
    """Give `window_start` or `window_end` its name in a plan; as an item of the select list it
    keeps the name it was written with.
    """
    written = column.name
    column.set("this", exp.to_identifier(_PSEUDO_COLUMNS[written.lower()]))
    if column.parent is not select:
        return
    position = next(i for i, e in enumerate(select.expressions) if e is column)
    alias = exp.Alias(this=column.copy(), alias=exp.to_identifier(written))
    alias.meta.update(column.meta)
    select.expressions[position] = alias
    alias.parent = select
    alias.arg_key = "expressions"

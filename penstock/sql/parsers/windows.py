"""Window clauses and FILL."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql import nodes
from penstock.sql.parsers.over import OverParser
from penstock.sql.source import mark

_FILL_MODES = ("NONE", "NULL", "NULL_F", "VALUE", "VALUE_F", "PREV", "NEXT", "LINEAR")
#: modes that take a value of another row, or one that is given where no row is near
_NEAR_MODES = ("PREV", "NEXT", "NEAR")
#: most rows that JLIMIT may ask for
MOST_JOINED = 1024
#: words of clauses that are followed by a parenthesis
_CALLED = frozenset("INTERVAL SESSION STATE_WINDOW COUNT_WINDOW SLIDING FILL RANGE EVERY".split())


class WindowParser(OverParser):
    """The grammar of windows on top of expressions."""

    def _sees_window(self) -> bool:
        word = self.word()
        if word in _CALLED:
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
        node = nodes.CountWindow(size=self._whole_number())
        if self.take_type(TokenType.COMMA):
            node.set("sliding", self._whole_number())
        self.close()
        return node

    # ---------------------------------------------------------------- joins by time

    def _window_offset(self) -> nodes.WindowOffset:
        """Read `WINDOW_OFFSET(begin, end)`, each a length of time with or without a minus."""
        start = self.offset
        self.expect("WINDOW_OFFSET")
        self.open()
        begin = self._length_with_sign()
        self.expect_type(TokenType.COMMA, '","')
        node = nodes.WindowOffset(begin=begin, end=self._length_with_sign())
        self.close()
        mark(node, start, self.previous_end)
        return node

    def _length_with_sign(self) -> exp.Expr:
        start = self.offset
        minus = self.take_type(TokenType.DASH)
        length = self._length()
        node = exp.Neg(this=length) if minus else length
        mark(node, start, self.previous_end)
        return node

    def _join_limit(self, method: str) -> exp.Expr | None:
        """Read `JLIMIT n` of a join by time, if it says more than the join itself: an ASOF JOIN
        finds one row in any case.
        """
        if not self.sees("JLIMIT"):
            return None
        if not method:
            self.fail(
                "JLIMIT is of an ASOF JOIN or a WINDOW JOIN",
                hint="leave it out, and limit the rows of the query",
            )
        self.index += 1
        start = self.offset
        node: exp.Expr = exp.Literal.number(self.integer())
        mark(node, start, self.previous_end)
        if int(node.name) > MOST_JOINED:
            self.fail(
                f"JLIMIT is a number from 0 to {MOST_JOINED}",
                hint="without JLIMIT a WINDOW JOIN gives all rows of each window",
                index=self.index - 1,
            )
        return None if method == "ASOF" and int(node.name) == 1 else node

    def _whole_number(self) -> exp.Expr:
        """A whole number that the planner checks (so that 0 and -1 get its message)."""
        start = self.offset
        minus = self.take_type(TokenType.DASH)
        node: exp.Expr = exp.Literal.number(self.integer())
        node = exp.Neg(this=node) if minus else node
        mark(node, start, self.previous_end)
        return node

    def _range(self) -> nodes.Range:
        """`RANGE(start[, end][, around]) [EVERY(step)]`"""
        start = self.offset
        self.expect("RANGE")
        self.open()
        node = nodes.Range(start=self.expression())
        if self.take_type(TokenType.COMMA):
            second = self.expression()
            between = not isinstance(second, nodes.DurationLiteral)
            node.set("end" if between else "around", second)
            if between and self.take_type(TokenType.COMMA):
                node.set("around", self._length())
        self.close()
        if self.take("EVERY"):
            node.set("step", self._in_parentheses())
        mark(node, start, self.previous_end)
        return node

    def _fill(self, *, ranged: bool = False) -> nodes.Fill:
        """`FILL(mode[, values…])`; behind RANGE there are more forms."""
        start = self.offset
        self.expect("FILL")
        self.open()
        mode = self.one_of((*_FILL_MODES, "NEAR") if ranged else _FILL_MODES, "a FILL mode")
        values: list[exp.Expr] = []
        if mode.startswith("VALUE") or (ranged and mode in _NEAR_MODES):
            while self.take_type(TokenType.COMMA):
                values.append(self.condition())
            if not values and mode.startswith("VALUE"):
                self.fail(f"FILL({mode}) needs values")
        self.close()
        node = nodes.Fill(mode=mode, values=values or None)
        mark(node, start, self.previous_end)
        return node

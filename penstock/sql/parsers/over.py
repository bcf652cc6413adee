"""What stands behind a call: `FILTER (WHERE …)`, and `OVER (…)`, which makes a function of a row
and its neighbours of it.

`WINDOW name AS (…)` is written out: whoever reads the tree meets whole windows only.
"""

from __future__ import annotations

import copy

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsers.expression import ExpressionParser
from penstock.sql.source import mark, span_of

_FRAMES = ("ROWS", "RANGE")
_SIDES = ("PRECEDING", "FOLLOWING")
#: sides of the row in the order of rows; None is the row itself
_PLACES = {"PRECEDING": 0, None: 1, "FOLLOWING": 2}
#: the parts of a window
_PARTS = ("partition_by", "order", "spec")


class OverParser(ExpressionParser):
    """The grammar of OVER and FILTER on top of expressions."""

    def _call_tail(self, call: exp.Expr, start: int) -> exp.Expr:
        if self.sees("FILTER") and self.sees_type(TokenType.L_PAREN, 1):
            call = self._filter(call, start)
        if self.take("OVER"):
            call = self._over(call)
            mark(call, start, self.previous_end)
        return call

    def _filter(self, call: exp.Expr, start: int) -> exp.Expr:
        mark(call, start, self.previous_end)
        self.index += 1
        self.open()
        self.expect("WHERE")
        made = exp.Filter(this=call, expression=exp.Where(this=self.condition()))
        self.close()
        mark(made, start, self.previous_end)
        return made

    def _over(self, call: exp.Expr) -> exp.Window:
        if self.sees_type(TokenType.L_PAREN):
            return self._window_parts(call)
        return exp.Window(this=call, alias=self._identifier())

    def _window_parts(self, call: exp.Expr | None) -> exp.Window:
        """Read `(PARTITION BY … ORDER BY … frame)`."""
        self.open()
        window = exp.Window(this=call)
        if self.take("PARTITION"):
            self.expect("BY")
            window.set("partition_by", list(self.list_of(self.expression)))
        if self.take("ORDER"):
            self.expect("BY")
            window.set("order", exp.Order(expressions=list(self.list_of(self._order_item))))
        if self.word() in _FRAMES:
            window.set("spec", self._frame())
        self.close()
        return window

    def _order_item(self) -> exp.Ordered:
        item = exp.Ordered(this=self.expression())
        if self.take("DESC"):
            item.set("desc", True)
        else:
            self.take("ASC")
        if self.take("NULLS"):
            item.set("nulls_first", self.one_of(("FIRST", "LAST"), "FIRST or LAST") == "FIRST")
        return item

    # ---------------------------------------------------------------- frames

    def _frame(self) -> exp.WindowSpec:
        """Read `ROWS | RANGE [BETWEEN] bound [AND bound]`."""
        begin = self.offset
        kind = self.one_of(_FRAMES, "ROWS or RANGE")
        if self.take("BETWEEN"):
            start, start_side = self._bound()
            self.expect("AND")
            end, end_side = self._bound()
        else:
            start, start_side = self._bound()
            end, end_side = "CURRENT ROW", None
        spec = exp.WindowSpec(
            kind=kind, start=start, start_side=start_side, end=end, end_side=end_side
        )
        mark(spec, begin, self.previous_end)
        reversed_sides = _PLACES[start_side] > _PLACES[end_side]
        nothing = ("UNBOUNDED", "FOLLOWING") == (start, start_side)
        nothing = nothing or ("UNBOUNDED", "PRECEDING") == (end, end_side)
        if reversed_sides or nothing:
            self.fail("a frame begins before it ends", index=self.index - 1)
        return spec

    def _bound(self) -> tuple[exp.Expr | str, str | None]:
        """Read `UNBOUNDED | n | 10s PRECEDING | FOLLOWING`, or `CURRENT ROW`."""
        if self.take("CURRENT"):
            self.expect("ROW")
            return "CURRENT ROW", None
        value: exp.Expr | str = "UNBOUNDED"
        if not self.take("UNBOUNDED"):
            if not self.sees_type(TokenType.NUMBER):
                self.fail("expected UNBOUNDED, CURRENT ROW, or how far the frame reaches")
            start = self.offset
            value = self._number()
            mark(value, start, self.previous_end)
        return value, self.one_of(_SIDES, "PRECEDING or FOLLOWING")

    # ---------------------------------------------------------------- WINDOW name AS (…)

    def _sees_window_names(self) -> bool:
        """Return True at `WINDOW name AS (`: elsewhere the word is a name."""
        return (
            self.word() == "WINDOW"
            and self.word(2) == "AS"
            and self.sees_type(TokenType.L_PAREN, 3)
        )

    def _window_names(self) -> dict[str, exp.Window]:
        """Read `WINDOW name AS (…), …`, by names in lower case."""
        self.expect("WINDOW")
        found: dict[str, exp.Window] = {}
        while True:
            name = self._identifier().name.lower()
            if name in found:
                self.fail(f"two windows are called {name}", index=self.index - 1)
            self.expect("AS")
            found[name] = self._window_parts(None)
            if not self.take_type(TokenType.COMMA):
                return found

    def _write_out_windows(self, query: exp.Query, named: dict[str, exp.Window]) -> None:
        """Give each `OVER name` of *query* itself the parts of its window."""
        own = query.walk(prune=lambda n: isinstance(n, exp.Query) and n is not query)
        for window in [n for n in own if isinstance(n, exp.Window)]:
            alias = window.args.pop("alias", None)
            if alias is None:
                continue
            meant = self._window_called(alias, named)
            for key in _PARTS:
                part = meant.args.get(key)
                if part is not None:
                    window.set(key, copy.deepcopy(part))

    def _window_called(self, alias: exp.Expr, named: dict[str, exp.Window]) -> exp.Window:
        """Return the window of a name. Raises SqlSyntaxError: there is none."""
        meant = named.get(alias.name.lower())
        if meant is not None:
            return meant
        span = span_of(alias)
        raise self.source.syntax_error(
            f"there is no window called {alias.name}",
            span[0] if span else self.offset,
            len(alias.name),
            hint="write OVER (…), or WINDOW name AS (…) behind HAVING",
        )

"""RANGE, EVERY and FILL of a SELECT with interp(): the points in time, and what stands between
rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import polars as pl
from sqlglot import exp

from penstock.errors import PenstockError
from penstock.sql import nodes
from penstock.sql.compile.constants import ticks_of
from penstock.sql.dialect import to_sql
from penstock.sql.relational import Output
from penstock.sql.statements import Query
from penstock.sql.words import TIME_FORMS
from penstock.types import TIME_LIMITS, ColumnType
from services.store.interpolation import Filled, Mode, Points

_NEAR = ("prev", "next", "near")
#: modes by what rows they read: none behind the last point, none before the first
_NOTHING_BEHIND = ("none", "prev")
_NOTHING_BEFORE = ("none", "next")
_EXAMPLE = "RANGE('2026-01-01 00:00:00', '2026-01-02 00:00:00') EVERY(1h) FILL(PREV)"


class Constants(Protocol):
    """Computes expressions that read nothing."""

    def constant(self, node: exp.Expr) -> tuple[pl.Series, Output]: ...


@dataclass(frozen=True)
class RangeClause:
    """The points, and how a value is made up at them; `given`: with values for where no row is
    near.
    """

    points: Points
    mode: Mode
    given: bool
    #: first and last time that there can be
    limits: tuple[int, int]

    def bounds(self, time: exp.Column) -> Iterator[exp.Expr]:
        """Yield conditions on the time of the rows that are needed."""
        if self.given:  # a partition is answered for, even if its rows are all far away
            return
        around = self.points.around
        reach = around or 0
        if around is not None or self.mode in _NOTHING_BEFORE:
            low = max(self.points.start - reach, self.limits[0])
            yield exp.GTE(this=time.copy(), expression=_ticks(low))
        if around is not None or self.mode in _NOTHING_BEHIND:
            high = min(self.points.end + reach, self.limits[1])
            yield exp.LTE(this=time.copy(), expression=_ticks(high))

    def check_size(self, groups: int, most: int) -> None:
        """Refuse more points than an answer may have rows. Raises PenstockError."""
        if self.points.count * groups > most:
            raise PenstockError(
                f"RANGE and EVERY give {self.points.count * groups} points, more than {most}",
                code="E_RESULT_TOO_LARGE",
                hint="take a shorter range, a longer step or fewer partitions",
            )


def _ticks(ticks: int) -> exp.Expr:
    number = exp.Literal.number(abs(ticks))
    return exp.Neg(this=number) if ticks < 0 else number


class RangeReader:
    """Reads the clauses of one SELECT."""

    def __init__(
        self, constants: Constants, statement: Query, timezone: str, precision: str
    ) -> None:
        self._constants = constants
        self._statement = statement
        self._timezone = timezone
        self._precision = precision
        self._fill: nodes.Fill | None = None

    def read(self, select: exp.Select, calls: Sequence[exp.Anonymous]) -> RangeClause:
        """Return what the clauses mean. Raises SqlError."""
        self._fill = select.args.get("fill")
        mode: Mode = "none"
        if self._fill is not None:
            mode = self._fill.args["mode"].removesuffix("_F").lower()
        values = self._values()
        if values and len(values) != len(calls):
            self._refuse(
                self._fill,
                f"FILL has {len(values)} values for {len(calls)} columns",
                "write one for each interp()",
                "E_FILL_VALUES",
            )
        clause = select.args["range"]
        points = self._points(clause)
        if points.around is not None and mode not in _NEAR:
            self._refuse(
                clause,
                "a time around the points is for FILL(PREV), FILL(NEXT) and FILL(NEAR)",
                "RANGE('2026-01-01 00:00:00', 1h) FILL(NEAR, 0)",
            )
        given = bool(values) and mode in _NEAR
        return RangeClause(points, mode, given, TIME_LIMITS[self._precision])

    def columns(self, calls: Sequence[exp.Anonymous], kinds: Sequence[ColumnType]) -> list[Filled]:
        """Return the columns to be read, of the types *kinds*. Raises SqlError."""
        values = self._values() or [None] * len(calls)
        return [
            Filled(f"_penstock_value_{n}", self._ignores_null(call), self._value(value, kind))
            for n, (call, kind, value) in enumerate(zip(calls, kinds, values, strict=True))
        ]

    # ---------------------------------------------------------------- RANGE and EVERY

    def _points(self, clause: nodes.Range) -> Points:
        start = self._moment(clause.args["start"])
        end_node = clause.args.get("end")
        end = start if end_node is None else self._moment(end_node)
        if end < start:
            self._refuse(end_node, "RANGE ends before it begins", "write the earlier time first")
        step_node = clause.args.get("step")
        if step_node is None and end > start:
            self._refuse(clause, "RANGE needs EVERY: how far its points are apart", _EXAMPLE)
        # a longer step than the whole range reaches no second point either
        step = 1 if step_node is None else min(self._length(step_node), end - start + 1)
        around_node = clause.args.get("around")
        around = None if around_node is None else self._length(around_node)
        return Points(start, end, step, around)

    def _moment(self, node: exp.Expr) -> int:
        """Return a time in ticks."""
        is_text = isinstance(node, exp.Literal) and node.is_string
        ticks = (
            ticks_of(node.name, self._precision, self._timezone) if is_text else self._compute(node)
        )
        low, high = TIME_LIMITS[self._precision]
        if ticks is None or not low <= ticks <= high:
            shown = f"'{node.name[:64]}'" if is_text else to_sql(node)[:64]
            self._refuse(node, f"{shown} is no time", TIME_FORMS, "E_TYPE")
        return ticks

    def _compute(self, node: exp.Expr) -> int | None:
        """Return the ticks of an expression without columns; None where it is NULL."""
        if node.find(exp.Column, exp.Query) is not None:
            self._refuse(node, "the times of RANGE are constants", _EXAMPLE)
        found, output = self._constants.constant(node)
        if output.type.kind == "TIMESTAMP":
            found = found.cast(pl.Datetime(self._precision))  # type: ignore[arg-type]
        elif not output.type.integer:
            self._refuse(node, f"the times of RANGE are times, not {output.type}", TIME_FORMS)
        ticks = found.cast(pl.Int64, strict=False)[0]
        return None if ticks is None else int(ticks)

    def _length(self, node: nodes.DurationLiteral) -> int:
        duration = node.duration
        ticks = 0 if duration.natural else duration.ticks(self._precision)
        if ticks < 1:
            self._refuse(
                node,
                f"{duration} is no length here",
                f"write one of 1{self._precision[0].replace('m', 'a')} or more, in b u a s m h d w",
            )
        return ticks

    # ---------------------------------------------------------------- values

    def _values(self) -> list[exp.Expr | None]:
        return list(self._fill.args.get("values") or []) if self._fill is not None else []

    def _value(self, node: exp.Expr | None, kind: ColumnType) -> Any:
        """Return a value of FILL for a column of the type *kind*."""
        if not (kind.numeric or kind.kind == "TIMESTAMP") and self._is_line():
            self._refuse(
                self._fill,
                f"no line goes through values of {kind}",
                "write FILL(PREV), FILL(NEXT) or FILL(NEAR)",
                "E_TYPE",
            )
        if node is None or isinstance(node, exp.Null):
            return None
        value = _constant(node, kind)
        if value is None:
            self._refuse(
                node, f"this is no value of {kind}", "write a constant or NULL", "E_FILL_VALUES"
            )
        return value

    def _is_line(self) -> bool:
        return self._fill is not None and self._fill.args["mode"] == "LINEAR"

    def _ignores_null(self, call: exp.Anonymous) -> bool:
        if len(call.expressions) == 1:
            return False
        given = call.expressions[1]
        if not isinstance(given, exp.Literal) or given.is_string or given.this not in ("0", "1"):
            self._refuse(
                given,
                "the second argument of interp() is 0 or 1",
                "1: rows with NULL count as no rows",
                "E_FUNCTION_ARGUMENT",
            )
        return bool(given.this == "1")

    def _refuse(
        self, at: exp.Expr | None, message: str, hint: str, code: str = "E_UNSUPPORTED_QUERY"
    ) -> NoReturn:
        raise self._statement.error(message, at, code=code, hint=hint)


def _constant(node: exp.Expr, kind: ColumnType) -> bool | str | int | float | None:
    """Return the constant that *node* is; None: it is none of the type *kind*."""
    if isinstance(node, exp.Boolean):
        return bool(node.this) if kind.kind == "BOOL" else None
    if isinstance(node, exp.Neg):
        number = _constant(node.this, kind)
        return -number if isinstance(number, int | float) and kind.numeric else None
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return str(node.this) if kind.text else None
    return _number(str(node.this)) if kind.numeric else None


def _number(text: str) -> int | float:
    return int(text) if text.isdecimal() else float(text)

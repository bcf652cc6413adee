"""Plain INTERVAL windows as one GROUP BY of DuckDB, which need not bring every row here.

Only what both compute alike: windows of one length that do not overlap, and aggregates whose answer
does not depend on the order of rows (but for the last digits of a sum of DOUBLE). Everything else
is the kernels'.
"""

from __future__ import annotations

import re

from penstock.duck.types import duck_type
from penstock.sql.functions.moments import MAKERS
from penstock.sql.plan import Aggregate, Interval, StreamPlan
from penstock.sql.relational import Output, TableColumns
from services.store.relation import quote
from services.store.times import TICKS

_UTC = ("UTC", "Etc/UTC")
_SMALL = frozenset({"TINYINT", "SMALLINT", "INT"})
#: their sums are far from the limits of BIGINT
_INTEGERS = _SMALL | {f"{kind} UNSIGNED" for kind in _SMALL}
_REALS = frozenset({"FLOAT", "DOUBLE"})
_GROUPS = _INTEGERS | {"BIGINT", "BOOL", "VARCHAR", "NCHAR"}
#: microseconds of a tick, where a time in microseconds says it all
_MICROSECONDS = {"ms": 1_000, "us": 1}
_LONGEST = 2**62
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def sql(plan: StreamPlan, rows: str) -> str | None:
    """Return the SELECT of a plan's windows, times in ticks; None where the kernels must compute
    them.

    Args:
        rows: FROM and WHERE of the rows that count.
    """
    if not isinstance(plan.window, Interval) or plan.functions:
        return None
    step = _step(plan, plan.window)
    writer = PlanWriter(plan)
    start = writer.ticks("_window")
    values = writer.values() | {"_wstart": start, "_wend": f"{start} + {step}"}
    shown = [values.get(output.sql) for output in plan.outputs]
    if step is None or None in shown or not writer.groups_alike():
        return None
    offset = plan.window.offset
    shift = offset.ticks(plan.source.precision) if offset is not None else 0
    listed = ", ".join(
        f"{value} AS {quote(c.name)}" for value, c in zip(shown, plan.target.columns, strict=True)
    )
    groups = ", ".join(["_window", *(f"_k{i}" for i in range(len(plan.keys)))])
    return f"SELECT {listed} FROM ({writer.label(step, shift, rows)}) GROUP BY {groups}"


def named(windows: str, columns: TableColumns) -> str:
    """Return the SQL of windows that `sql` computes under the names of *columns*, times as
    timestamps.
    """
    inside = [f"_c{number}" for number in range(len(columns.columns))]
    shown = ", ".join(
        f"CAST({_time(name, output)} AS {_duck_type(output)}) AS {quote(output.name)}"
        for name, output in zip(inside, columns.columns, strict=True)
    )
    return f"SELECT {shown} FROM ({windows}) AS _windows({', '.join(inside)})"


def _time(name: str, output: Output) -> str:
    """Return the SQL of a value, which is ticks where it is a time."""
    return f"{MAKERS[output.precision]}({name})" if output.type.kind == "TIMESTAMP" else name


def _duck_type(output: Output) -> str:
    return duck_type(output.type.kind, output.precision, str(output.type))


def _step(plan: StreamPlan, window: Interval) -> int | None:
    """Return the length of the windows in ticks, if they are all of one and each time is in one."""
    if window.size != window.sliding or window.size.natural:
        return None
    if plan.target.precision != plan.source.precision:
        return None
    if window.size.unit in ("d", "w") and plan.timezone not in _UTC:
        return None  # days of other zones are not all equally long
    step = window.size.ticks(plan.source.precision)
    # longer than DuckDB's microseconds
    return None if step * _MICROSECONDS.get(plan.source.precision, 0) > _LONGEST else step


class PlanWriter:
    """Writes what is computed of the rows of one plan."""

    def __init__(self, plan: StreamPlan) -> None:
        self._plan = plan
        columns = (*plan.source.columns, *plan.source.tags)
        self._types = {c.name: c.type.kind for c in columns} | {"tbname": "VARCHAR"}
        #: column → what it is called inside
        self._named: dict[str, str] = {}

    def groups_alike(self) -> bool:
        """Tell if all keys are columns whose values both engines group alike."""
        return all(self._types.get(key.sql) in _GROUPS for key in self._plan.keys)

    def values(self) -> dict[str, str]:
        """Return what an output may be, but for the times of its window → its SQL."""
        made = {a.name: text for a in self._plan.aggregates if (text := self._aggregate(a))}
        return made | {f"_k{i}": f"_k{i}" for i in range(len(self._plan.keys))}

    def ticks(self, window: str) -> str:
        """Return the SQL of a window's beginning in ticks; *window* is what `labelled` calls it."""
        precision = self._plan.source.precision
        return f"{TICKS[precision]}({window})" if precision in _MICROSECONDS else window

    def label(self, step: int, shift: int, rows: str) -> str:
        """Return the SQL of the rows with their windows: the beginning of each, as `_window`."""
        precision = self._plan.source.precision
        time = quote(self._plan.source.time_column)
        if precision in _MICROSECONDS:
            # dividing ticks makes the whole query a half slower
            units = _MICROSECONDS[precision]
            start = (
                f"time_bucket(INTERVAL '{step * units} microseconds',"
                f" CAST({time} AS TIMESTAMP), make_timestamp({shift * units}))"
            )
        else:
            at = f"{TICKS[precision]}({time})"
            # the rest of a negative number is negative
            start = f"{at} - (({at} - {shift}) % {step} + {step}) % {step}"
        return self.select([f"{start} AS _window"], rows)

    def select(self, times: list[str], rows: str) -> str:
        """Return the SQL of *times*, keys and arguments of *rows*."""
        keys = (f"{quote(key.sql)} AS _k{i}" for i, key in enumerate(self._plan.keys))
        arguments = (
            f"{_known(column, self._types.get(column))} AS {name}"
            for column, name in self._named.items()
        )
        return f"SELECT {', '.join([*times, *keys, *arguments])} {rows}"

    def _aggregate(self, aggregate: Aggregate) -> str | None:
        if aggregate.of is not None or aggregate.params:
            return None
        if aggregate.sql is None:
            return "count(*)" if aggregate.function == "count" else None
        kind = self._types.get(aggregate.sql)
        if kind is None or not _NAME.fullmatch(aggregate.sql):
            return None
        name = self._named.setdefault(aggregate.sql, f"_v{len(self._named)}")
        if aggregate.function == "count":
            return f"count({name})"
        if kind in _INTEGERS:
            return _of_integers(aggregate.function, name)
        return _of_reals(aggregate.function, name) if kind in _REALS else None


def _of_integers(function: str, name: str) -> str | None:
    return {
        "min": f"min({name})",
        "max": f"max({name})",
        "sum": f"CAST(sum({name}) AS BIGINT)",
        "avg": f"CAST(sum({name}) AS DOUBLE) / count({name})",
    }.get(function)


def _of_reals(function: str, name: str) -> str | None:
    real = f"CAST({name} AS DOUBLE)"
    answer = {
        "min": f"min({name})",
        "max": f"max({name})",
        "sum": f"sum({real})",
        "avg": f"sum({real}) / count({name})",
    }.get(function)
    # an answer that is not finite is none, as with the kernels
    return None if answer is None else f"CASE WHEN isfinite({answer}) THEN {answer} END"


def _known(column: str, kind: str | None) -> str:
    """Return the SQL of a column's value: NaN is none.

    DuckDB believes that there is no NaN (`isnan`) in a file whose other values are all finite.
    """
    name = quote(column)
    if kind not in _REALS:
        return name
    return f"CASE WHEN isfinite({name}) OR isinf({name}) THEN {name} END"

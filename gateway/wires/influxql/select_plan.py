"""A SELECT of InfluxQL as a question in our SQL.

Owns the translation. Names in the text are the catalog's own, in backticks, lengths of time are
whole numbers, and every value is a parameter: nothing that a user wrote gets into the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.wires.influxql.bounds import NanosecondRange, split
from gateway.wires.influxql.parser import unsupported
from gateway.wires.influxql.schema import Measurement, is_number
from gateway.wires.influxql.tree import (
    Both,
    Comparison,
    Condition,
    Either,
    Pattern,
    Select,
    SelectColumn,
    TimeBound,
)
from penstock.errors import SqlSemanticError
from penstock.sql.plan import Column
from penstock.sql.words import in_backticks

_FUNCTIONS: Final[dict[str, str]] = {
    "count": "count",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "sum": "sum",
    "first": "first",
    "last": "last",
}
#: of an answer: as many as a table can have
MOST_COLUMNS = 4096
#: functions whose value is one row's, so that its time can stand beside it
_SELECTORS = frozenset(("min", "max", "first", "last"))
_ONLY_NUMBERS = frozenset(("mean", "sum"))
_UNITS = (("s", 10**9), ("a", 10**6), ("u", 10**3), ("b", 1))
_INT64 = 2**63 - 1
#: the years 1 to 9999, in nanoseconds
_FIRST_MOMENT = -62_135_596_800 * 10**9
_LAST_MOMENT = 253_402_300_799 * 10**9
_NEVER = "1 = 0"
_ALWAYS = "1 = 1"


@dataclass(frozen=True)
class Value:
    """A column of the answer; without `column` it is always empty."""

    label: str
    function: str | None
    column: Column | None


@dataclass(frozen=True)
class MeasurementPlan:
    """What is asked, and what the columns of the answer are: the time if it is `timed`, those
    of `tags` that have a column, and those of `values` that have one.
    """

    measurement: str
    sql: str
    parameters: list[object]
    timed: bool
    tags: tuple[tuple[str, Column | None], ...]
    values: tuple[Value, ...]
    times: NanosecondRange


@dataclass
class _Text:
    """A text under construction, and the values of its placeholders."""

    measurement: Measurement
    parameters: list[object] = field(default_factory=list)

    def placeholder(self, value: object) -> str:
        self.parameters.append(value)
        return "?"


def plan(select: Select, measurement: Measurement, asked: str, now: int) -> MeasurementPlan | None:
    """Return the question; None when it can have no rows, since nothing that it names is there.

    Args:
        asked: the measurement's name in the query.
        now: nanoseconds since 1970.

    Raises:
        SqlSemanticError: it cannot be said in our SQL.
    """
    tags = _group_tags(select, measurement)
    values = _values(select, measurement, {name.lower() for name, _ in tags})
    fields = [v for v in values if v.column is not None and measurement.field(v.column.name)]
    if not fields:
        return None
    times, others = split(select.where)
    windowed = select.grouping.every is not None
    if windowed:
        times = _times_of_windows(values, times, now)
    selector = len(fields) == 1 and fields[0].function in _SELECTORS
    timed = values[0].function is None or windowed or selector
    text = _Text(measurement)
    sql = " ".join(_clauses(select, text, values, tags, times, others, timed))
    return MeasurementPlan(asked, sql, text.parameters, timed, tags, tuple(values), times)


def _times_of_windows(values: Sequence[Value], times: NanosecondRange, now: int) -> NanosecondRange:
    """Windows end now where the query names no end. Raises SqlSemanticError."""
    if values[0].function is None:
        raise _wrong("GROUP BY requires at least one aggregate function")
    return NanosecondRange(times.start, now) if times.end is None else times


def _wrong(message: str) -> SqlSemanticError:
    return SqlSemanticError(message, code="E_UNSUPPORTED_QUERY")


# ---------------------------------------------------------------- columns


def _group_tags(select: Select, measurement: Measurement) -> tuple[tuple[str, Column | None], ...]:
    if select.grouping.tags is None:
        return tuple((c.name, c) for c in measurement.tags)
    return tuple((n, measurement.tag(n)) for n in dict.fromkeys(select.grouping.tags))


def _values(select: Select, measurement: Measurement, grouped: set[str]) -> list[Value]:
    found: list[Value] = []
    for output in select.outputs:
        found += _values_of(output, measurement, grouped)
        if len(found) > MOST_COLUMNS:
            raise _wrong(f"the answer would have more than {MOST_COLUMNS} columns")
    if len({v.function is None for v in found}) > 1:
        raise _wrong("mixing aggregate and non-aggregate queries is not supported")
    return _with_own_labels(found)


def _values_of(
    output: SelectColumn, measurement: Measurement, grouped: set[str]
) -> Iterator[Value]:
    """Return what one output stands for; the time is none of the values."""
    if output.name is None:
        yield from _all_values(output, measurement, grouped)
    elif output.function is not None:
        label = output.alias or output.function
        yield Value(label, output.function, measurement.field(output.name))
    elif output.name.lower() != "time":
        column = measurement.field(output.name) or measurement.tag(output.name)
        yield Value(output.alias or output.name, None, column)


def _all_values(
    output: SelectColumn, measurement: Measurement, grouped: set[str]
) -> Iterator[Value]:
    """Return what `*` stands for, alone or in a function."""
    function = output.function
    if function is None:
        columns = sorted((*measurement.fields, *measurement.tags), key=lambda c: c.name)
        yield from (Value(c.name, None, c) for c in columns if c.name.lower() not in grouped)
        return
    for column in measurement.fields:
        if function not in _ONLY_NUMBERS or is_number(column.type):
            yield Value(f"{output.alias or function}_{column.name}", function, column)


def _with_own_labels(values: Sequence[Value]) -> list[Value]:
    """Number labels that come again: mean, mean_1, mean_2."""
    seen: dict[str, int] = {}
    found = []
    for value in values:
        times = seen[value.label] = seen.get(value.label, -1) + 1
        label = f"{value.label}_{times}" if times else value.label
        found.append(Value(label, value.function, value.column))
    return found


# ---------------------------------------------------------------- text


def _clauses(
    select: Select,
    text: _Text,
    values: Sequence[Value],
    tags: Sequence[tuple[str, Column | None]],
    times: NanosecondRange,
    others: Sequence[Condition],
    timed: bool,
) -> Iterator[str]:
    table = text.measurement.table
    every = select.grouping.every
    by = [in_backticks(column.name) for _, column in tags if column is not None]
    yield f"SELECT {', '.join(_outputs(text.measurement, values, by, every, timed))}"
    yield f"FROM {in_backticks(table.database)}.{in_backticks(table.name)}"
    raw = values[0].function is None
    conditions = _conditions(text, values, times, others)
    if conditions:
        yield f"WHERE {' AND '.join(conditions)}"
    yield from _groups(select, by, raw)
    if timed:
        yield "ORDER BY t DESC" if select.descending else "ORDER BY t"
    page = select.page
    if raw and not tags and page.limit:
        yield f"LIMIT {page.limit + page.offset}"


def _outputs(
    measurement: Measurement, values: Sequence[Value], by: list[str], every: int | None, timed: bool
) -> Iterator[str]:
    if timed:
        yield f"{'_wstart' if every is not None else in_backticks(measurement.time)} AS t"
    yield from (f"{name} AS g{i}" for i, name in enumerate(by))
    for i, value in enumerate(v for v in values if v.column is not None):
        assert value.column is not None
        name = in_backticks(value.column.name)
        if value.function is not None:
            name = f"{_FUNCTIONS[value.function]}({name})"
        yield f"{name} AS c{i}"


def _groups(select: Select, by: list[str], raw: bool) -> Iterator[str]:
    every = select.grouping.every
    if every is not None:
        if by:
            yield f"PARTITION BY {', '.join(by)}"
        yield f"INTERVAL({_length(every)}, {_length(select.grouping.offset)})"
    elif by and not raw:
        yield f"GROUP BY {', '.join(by)}"


def _length(nanoseconds: int) -> str:
    unit, size = next(u for u in _UNITS if nanoseconds % u[1] == 0)
    return f"{nanoseconds // size}{unit}"


def _conditions(
    text: _Text, values: Sequence[Value], times: NanosecondRange, others: Sequence[Condition]
) -> list[str]:
    found = [*_time_conditions(text, times), *(_condition(text, one) for one in others)]
    if values[0].function is None:
        found.append(_any_field(text.measurement, values))
    return found


def _time_conditions(text: _Text, times: NanosecondRange) -> Iterator[str]:
    name = in_backticks(text.measurement.time)
    tick = text.measurement.tick
    if times.start is not None:
        yield f"{name} >= {text.placeholder(_possible(-(-times.start // tick), tick))}"
    if times.end is not None:
        yield f"{name} <= {text.placeholder(_possible(times.end // tick, tick))}"


def _possible(ticks: int, tick: int) -> int:
    """Return the time that is nearest to *ticks* and that a row can have."""
    lowest = max(-_INT64, _FIRST_MOMENT // tick)
    return max(lowest, min(ticks, _INT64, _LAST_MOMENT // tick))


def _any_field(measurement: Measurement, values: Sequence[Value]) -> str:
    """A point without any of the fields is none."""
    names = dict.fromkeys(
        v.column.name for v in values if v.column is not None and measurement.field(v.column.name)
    )
    return f"({' OR '.join(f'{in_backticks(name)} IS NOT NULL' for name in names)})"


def _condition(text: _Text, condition: Condition) -> str:
    if isinstance(condition, Both | Either):
        word = " AND " if isinstance(condition, Both) else " OR "
        return f"({word.join([_condition(text, part) for part in condition.parts])})"
    assert not isinstance(condition, TimeBound), "split() takes them out"
    tag = text.measurement.tag(condition.name)
    column = tag or text.measurement.field(condition.name)
    if column is None:
        return _without_column(condition)
    if tag is not None:
        return _of_tag(text, in_backticks(tag.name), condition)
    return _compare(text, in_backticks(column.name), condition)


def _compare(text: _Text, name: str, condition: Comparison) -> str:
    value = condition.value
    if isinstance(value, Pattern):
        if condition.operator not in ("=~", "!~"):
            raise unsupported(f"a regular expression behind {condition.operator}")
        word = "MATCH" if condition.operator == "=~" else "NMATCH"
        return f"{name} {word} {text.placeholder(value.text)}"
    if condition.operator in ("=~", "!~"):
        raise unsupported(f"{condition.operator} without a regular expression")
    return f"{name} {condition.operator} {text.placeholder(value)}"


def _of_tag(text: _Text, name: str, condition: Comparison) -> str:
    """A tag that a series does not have counts as an empty text."""
    if isinstance(condition.value, Pattern):
        return _compare(text, f"coalesce({name}, {text.placeholder('')})", condition)
    compared = _compare(text, name, condition)
    empty = condition.value == ""
    if (condition.operator == "=" and empty) or (condition.operator == "!=" and not empty):
        return f"({compared} OR {name} IS NULL)"
    return compared


def _without_column(condition: Comparison) -> str:
    """What nobody wrote is a tag that no series has."""
    if condition.operator == "=":
        return _ALWAYS if condition.value == "" else _NEVER
    differs = condition.operator == "!=" and isinstance(condition.value, str)
    return _ALWAYS if differs and condition.value != "" else _NEVER

"""Times in a query: literals in the session's zone, durations, and arithmetic that has to do with
either.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql import nodes
from penstock.sql.plan import Duration
from penstock.sql.words import TIME_FORMS
from services.store.binding import BoundTable, Context
from services.store.functions import TIME_FUNCTIONS, function_name

_UNIT = {
    "b": "NANOSECOND",
    "u": "MICROSECOND",
    "a": "MILLISECOND",
    "s": "SECOND",
    "m": "MINUTE",
    "h": "HOUR",
    "d": "DAY",
    "w": "WEEK",
    "n": "MONTH",
    "y": "YEAR",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: key of a note in `meta`: times or durations are in it
_TIMELY = "timely"


def interval(duration: Duration) -> exp.Expr:
    """Return a duration as DuckDB writes it. Raises SqlSemanticError."""
    if duration.unit == "b":
        raise SqlSemanticError(
            "nanoseconds can't be added in a query",
            hint="use u or longer, or add to the column's number",
        )
    return exp.Interval(
        this=exp.Literal.string(str(duration.value)), unit=exp.var(_UNIT[duration.unit])
    )


def rewrite_sides(node: exp.Expr, sides: tuple[str, ...], context: Context) -> None:
    """Where one side of a comparison is a time column, make the literals on the others times."""
    bound = next(
        (b for side in sides if (b := context.time_table(node.args[side])) is not None), None
    )
    if bound is not None:
        for side in sides:
            node.set(side, time_literal(node.args[side], bound, context.timezone))


def time_literal(node: exp.Expr, bound: BoundTable, timezone: str) -> exp.Expr:
    """Return a literal beside a time column as a time: a number is ticks of the database, a text is
    a time in the session's zone unless it names its own.
    """
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal):
        return node
    if not literal.is_string:
        ticks = int(literal.this) * (-1 if negative else 1)
        return _moment(ticks, bound.precision)
    try:
        moment = _read(literal.this, timezone)
    except (ValueError, OverflowError):
        raise SqlSemanticError(f"'{literal.this}' is no time", hint=TIME_FORMS) from None
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return exp.cast(
        exp.Literal.string(text),
        exp.DataType.build(
            "TIMESTAMP_NS" if bound.precision == "ns" else "TIMESTAMP", dialect="duckdb"
        ),
    )


def read_time(text: str) -> datetime:
    """Return the time that *text* is, with its zone where it names one. Raises ValueError."""
    return datetime.fromisoformat(text.strip())


def _read(text: str, timezone: str) -> datetime:
    """Return a time as text, in UTC. Raises ValueError, OverflowError."""
    moment = read_time(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(timezone))
    return moment.astimezone(UTC)


def ticks(node: exp.Expr, precision: str, timezone: str) -> int | None:
    """Return the ticks, rounded down, of what `time_literal` understands; None for anything
    else.
    """
    negative = isinstance(node, exp.Neg)
    literal = node.this if negative else node
    if not isinstance(literal, exp.Literal):
        return None
    try:
        if not literal.is_string:
            return int(literal.this) * (-1 if negative else 1)
        if negative:
            return None
        micros = (_read(literal.this, timezone) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    return micros * 1000 if precision == "ns" else micros // {"ms": 1000, "us": 1}[precision]


def _moment(ticks: int, precision: str) -> exp.Expr:
    function = {"ms": "make_timestamp_ms", "us": "make_timestamp", "ns": "make_timestamp_ns"}[
        precision
    ]
    return exp.Anonymous(this=function, expressions=[exp.Literal.number(ticks)])


def is_time_arithmetic(node: exp.Expr, context: Context) -> bool:
    """Tell if times or durations are anywhere in *node*; found once for each node of a query."""
    known = node.meta.get(_TIMELY)
    if known is None:
        _mark_times(node, context)
        known = node.meta[_TIMELY]
    return bool(known)


def _mark_times(root: exp.Expr, context: Context) -> None:
    """Note at every node below *root* if times or durations are in it: from the leaves up, each
    looked at once.
    """
    for node in reversed(list(root.walk(bfs=True))):
        node.meta[_TIMELY] = _is_time(node, context) or any(
            child.meta.get(_TIMELY) for child in node.iter_expressions()
        )


def _is_time(node: exp.Expr, context: Context) -> bool:
    """Tell if *node* itself is a time or a duration."""
    return (
        isinstance(node, nodes.DurationLiteral | exp.Interval)
        or function_name(node) in TIME_FUNCTIONS
        or context.time_table(node) is not None
    )

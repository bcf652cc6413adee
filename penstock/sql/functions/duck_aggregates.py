"""Aggregates as DuckDB computes them. NULL and NaN are skipped, as in streams."""

from __future__ import annotations

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.functions.duckdb import PREFIX, Arguments, DuckForm, Macro, QueryScope, macro
from penstock.sql.functions.macros import FINITE, finite

#: true for NaN; of other types nothing is
#: true for NaN; of other types nothing is
_NAN = Macro(f"{PREFIX}is_nan", ("(x DOUBLE) AS isnan(x)", "(x) AS false"))
#: `x` where it counts. A FILTER with the same condition takes twice as long.
_KNOWN = f"CASE WHEN NOT {_NAN.name}(x) THEN x END"
_KNOWN_DOUBLE = "CASE WHEN NOT isnan(x) THEN x END"
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_UNSIGNED = tuple(f"U{kind}" for kind in _SIGNED)


def _number(name: str) -> DuckForm:
    """Return the form of an aggregate of numbers that gives DOUBLE, and that DuckDB has, too."""
    return macro(
        name,
        f"(x BOOLEAN) AS {finite}({name}(CAST(x AS INTEGER)))",
        *(f"(x {kind}) AS {finite}({name}(x))" for kind in (*_SIGNED, *_UNSIGNED)),
        f"(x DOUBLE) AS {finite}({name}({_KNOWN_DOUBLE}))",
        calls=(FINITE,),
    )


def _value(name: str, function: str) -> DuckForm:
    """Return the form of an aggregate that *function* of DuckDB's computes for any type."""
    return macro(name, f"(x) AS {function}({_KNOWN})", calls=(_NAN,))


#: exact whatever is between; NULL where the whole does not fit
SUM = macro(
    "sum",
    "(x BOOLEAN) AS CAST(sum(CAST(x AS INTEGER)) AS BIGINT)",
    *(f"(x {kind}) AS try_cast(sum(x) AS BIGINT)" for kind in _SIGNED),
    *(f"(x {kind}) AS try_cast(sum(x) AS UBIGINT)" for kind in _UNSIGNED),
    f"(x DOUBLE) AS {finite}(sum({_KNOWN_DOUBLE}))",
    calls=(FINITE,),
)
AVG = _number("avg")
STDDEV = _number("stddev_pop")
VARIANCE = _number("var_pop")
STDDEV_SAMPLE = _number("stddev_samp")
VARIANCE_SAMPLE = _number("var_samp")
MIN = _value("min", "min")
MAX = _value("max", "max")
DISTINCT = _value("hyperloglog", "approx_count_distinct")
_COUNT = _value("count", "count")
SPREAD = macro(
    "spread",
    *(
        f"(x {kind}) AS CAST({ticks}(max(x)) - {ticks}(min(x)) AS DOUBLE)"
        for kind, ticks in (
            ("TIMESTAMP_MS", "epoch_ms"),
            ("TIMESTAMP", "epoch_us"),
            ("TIMESTAMP_NS", "epoch_ns"),
        )
    ),
    f"(x DOUBLE) AS {finite}(max({_KNOWN_DOUBLE}) - min({_KNOWN_DOUBLE}))",
    calls=(FINITE,),
)


def count(args: Arguments, scope: QueryScope) -> exp.Expr:
    """Count rows, or values."""
    if isinstance(args[0], exp.Star):
        return exp.Anonymous(this="count", expressions=args)
    return _COUNT(args, scope)


def by_time(name: str, function: str, *, with_null: bool = False) -> DuckForm:
    """Return the form of an aggregate that picks a value by the time of its row.

    Args:
        name: of the function.
        function: of DuckDB's that picks it.
        with_null: the row counts, too, whose value is NULL.
    """
    value = "x" if with_null else _KNOWN
    pick = macro(name, f"(x, ts) AS {function}({value}, ts)", calls=() if with_null else (_NAN,))

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        column = args[0]
        bound = scope.of(column) if isinstance(column, exp.Column) else None
        bound = bound or scope.first_table
        if bound is None:
            raise SqlSemanticError("first and last need a table with a time column")
        table = column.table if isinstance(column, exp.Column) else None
        time = exp.column(bound.time_column, table=table or None, quoted=True)
        return pick([column, time], scope)

    return make


def share(name: str, function: str) -> DuckForm:
    """Return the form of a percentile, of which *function* of DuckDB's takes a share of 1."""
    pick = macro(
        name,
        f"(x BOOLEAN, p) AS {finite}({function}(CAST(x AS DOUBLE), p))",
        f"(x DOUBLE, p) AS {finite}({function}({_KNOWN_DOUBLE}, p))",
        calls=(FINITE,),
    )

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        part = args[1]
        number = isinstance(part, exp.Literal) and not part.is_string
        if not number or not 0 <= float(part.this) <= 100:
            raise SqlSemanticError(
                "a percentile is a number from 0 to 100", code="E_FUNCTION_ARGUMENT"
            )
        return pick([args[0], exp.Literal.number(float(part.this) / 100)], scope)

    return make

"""Aggregates as DuckDB computes them. NULL and NaN are skipped, as in streams.

A macro takes no DISTINCT, so each aggregate that it matters to has a macro more, of the different
values.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql.functions.duckdb import PREFIX, Arguments, DuckForm, Macro, QueryScope, macro
from penstock.sql.functions.exact import decimal_sum
from penstock.sql.functions.macros import FINITE, finite

#: true for NaN; of other types nothing is
NAN = Macro(f"{PREFIX}is_nan", ("(x DOUBLE) AS isnan(x)", "(x) AS false"))
#: `x` where it counts. A FILTER with the same condition takes twice as long.
KNOWN = f"CASE WHEN NOT {NAN.name}(x) THEN x END"
_KNOWN_DOUBLE = "CASE WHEN NOT isnan(x) THEN x END"
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_UNSIGNED = tuple(f"U{kind}" for kind in _SIGNED)


def values_of(args: Arguments) -> Arguments:
    """Return the arguments, those behind DISTINCT too."""
    first = args[0]
    return [*first.expressions, *args[1:]] if isinstance(first, exp.Distinct) else args


def _of_the_set(form: DuckForm) -> DuckForm:
    """Return the form of an aggregate that gives of different values what it gives of all."""
    return lambda args, scope: form(values_of(args), scope)


def _of_all_or_different(name: str, write: Callable[[str, str], DuckForm]) -> DuckForm:
    """Return the form of an aggregate to which it matters how often a value is there.

    Args:
        write: makes the macro of a name, with a word before what is aggregated.
    """
    of_all = write(name, "")
    of_different = write(f"distinct_{name}", "DISTINCT ")

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        form = of_different if isinstance(args[0], exp.Distinct) else of_all
        return form(values_of(args), scope)

    return make


def _number(name: str) -> DuckForm:
    """Return the form of an aggregate of numbers that gives DOUBLE, and that DuckDB has, too."""

    def write(own: str, word: str) -> DuckForm:
        return macro(
            own,
            f"(x BOOLEAN) AS {finite}({name}({word}CAST(x AS INTEGER)))",
            *(f"(x {kind}) AS {finite}({name}({word}x))" for kind in (*_SIGNED, *_UNSIGNED)),
            f"(x DOUBLE) AS {finite}({name}({word}{_KNOWN_DOUBLE}))",
            calls=(FINITE,),
        )

    return _of_all_or_different(name, write)


def _value(name: str, function: str) -> DuckForm:
    """Return the form of an aggregate that *function* of DuckDB's computes for any type."""
    return _of_the_set(macro(name, f"(x) AS {function}({KNOWN})", calls=(NAN,)))


def _write_sum(own: str, word: str) -> DuckForm:
    return macro(
        own,
        f"(x BOOLEAN) AS CAST(sum({word}CAST(x AS INTEGER)) AS BIGINT)",
        *(f"(x {kind}) AS try_cast(sum({word}x) AS BIGINT)" for kind in _SIGNED),
        *(f"(x {kind}) AS try_cast(sum({word}x) AS UBIGINT)" for kind in _UNSIGNED),
        f"(x DOUBLE) AS {finite}(sum({word}{_KNOWN_DOUBLE}))",
        calls=(FINITE,),
    )


def _write_count(own: str, word: str) -> DuckForm:
    return macro(own, f"(x) AS count({word}{KNOWN})", calls=(NAN,))


def _exact_of_decimals(name: str, form: DuckForm) -> DuckForm:
    """Return *form*, an aggregate that DuckDB computes exactly of DECIMAL, too. Left to choose
    among forms by itself, it takes DECIMAL for DOUBLE.
    """
    of_decimals = _of_all_or_different(
        f"decimal_{name}", lambda own, word: macro(own, f"(x) AS {name}({word}x)")
    )

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        kind = scope.argument
        exact = kind is not None and decimal_sum(kind) is not None
        return (of_decimals if exact else form)(args, scope)

    return make


#: exact whatever is between; NULL where the whole does not fit
SUM = _exact_of_decimals("sum", _of_all_or_different("sum", _write_sum))
AVG = _exact_of_decimals("avg", _number("avg"))
STDDEV = _number("stddev_pop")
VARIANCE = _number("var_pop")
STDDEV_SAMPLE = _number("stddev_samp")
VARIANCE_SAMPLE = _number("var_samp")
MIN = _value("min", "min")
MAX = _value("max", "max")
DISTINCT = _value("hyperloglog", "approx_count_distinct")
_COUNT = _of_all_or_different("count", _write_count)
_SPREAD = macro(
    "spread",
    f"(x DOUBLE) AS {finite}(max({_KNOWN_DOUBLE}) - min({_KNOWN_DOUBLE}))",
    calls=(FINITE,),
)
SPREAD = _of_the_set(_SPREAD)


def count(args: Arguments, scope: QueryScope) -> exp.Expr:
    """Count rows, or values."""
    if isinstance(args[0], exp.Star):
        return exp.Anonymous(this="count", expressions=args)
    return _COUNT(args, scope)


def by_time(name: str, function: str) -> DuckForm:
    """Return the form of an aggregate that picks a value by the time of its row.

    Args:
        name: of the function.
        function: of DuckDB's that picks it. To one that takes NULL, too, NaN is NULL.
    """
    pick = macro(name, f"(x, ts) AS {function}({KNOWN}, ts)", calls=(NAN,))

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        assert scope.time is not None  # the binder has seen to it
        return pick([values_of(args)[0], scope.time.copy()], scope)

    return make


def share(name: str, function: str) -> DuckForm:
    """Return the form of a percentile, of which *function* of DuckDB's takes a share of 1."""

    def write(own: str, word: str) -> DuckForm:
        return macro(
            own,
            f"(x BOOLEAN, p) AS {finite}({function}({word}CAST(x AS DOUBLE), p))",
            f"(x DOUBLE, p) AS {finite}({function}({word}{_KNOWN_DOUBLE}, p))",
            calls=(FINITE,),
        )

    pick = _of_all_or_different(name, write)

    def make(args: Arguments, scope: QueryScope) -> exp.Expr:
        value, part = values_of(args)[:2]
        number = isinstance(part, exp.Literal) and not part.is_string
        if not number or not 0 <= float(part.this) <= 100:
            raise SqlSemanticError(
                "a percentile is a number from 0 to 100", code="E_FUNCTION_ARGUMENT"
            )
        if isinstance(args[0], exp.Distinct):
            value = exp.Distinct(expressions=[value])
        return pick([value, exp.Literal.number(float(part.this) / 100)], scope)

    return make

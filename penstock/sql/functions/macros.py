"""Macros of DuckDB's that several functions are made of.

DuckDB writes an argument as often as a macro names it, so that what is nested would double with
each level. A macro that needs a value twice takes it through `list_transform`, which computes it
once. Fields of such a value are written `it['n']`: `it.n` is a column where a table is called `it`.
"""

from __future__ import annotations

from penstock.sql.functions.duckdb import PREFIX, DuckForm, Macro, macro

_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
WHOLE_TYPES = (*_WHOLE, *(f"U{name}" for name in _WHOLE))
FLOAT_TYPES = ("FLOAT", "DOUBLE")

#: NULL for what has no value in mathematics, or overflows
FINITE = Macro(
    f"{PREFIX}finite",
    ("(y) AS list_transform([y], lambda v: CASE WHEN isfinite(v) THEN v END)[1]",),
)
finite = FINITE.name


def finite_of(name: str, body: str) -> DuckForm:
    """Return the form of a function of one DOUBLE, which *body* computes from `@`."""
    text = body.replace("@", "CAST(x AS DOUBLE)")
    return macro(name, f"(x) AS {finite}(try({text}))", calls=(FINITE,))


def by_type(name: str, whole: str, floating: str, more: str = "") -> DuckForm:
    """Return the form of a function that gives the type of its first argument, `@`.

    Args:
        name: of the macro.
        whole: what computes it for integers; a value that the type cannot hold is NULL.
        floating: what computes it for FLOAT and DOUBLE.
        more: further parameters, each behind a comma.
    """
    truth = whole.replace("@", "CAST(x AS INTEGER)")
    overloads = [f"(x BOOLEAN{more}) AS CAST({truth} AS INTEGER)"]
    overloads += [
        f"(x {kind}{more}) AS try_cast({whole.replace('@', 'x')} AS {kind})" for kind in WHOLE_TYPES
    ]
    overloads += [
        f"(x {kind}{more}) AS CAST({floating.replace('@', 'x')} AS {kind})" for kind in FLOAT_TYPES
    ]
    return macro(name, *overloads)


#: moves the digit where a number is cut or rounded to the point, and back
_AT_DIGITS = (
    "list_transform([{{'v': CAST(@ AS DOUBLE), 'n': n, 's': pow(10.0, abs(n))}}], lambda it:"
    " CASE WHEN it['n'] >= 0 THEN CASE WHEN isfinite({whole}(it['v'] * it['s']) / it['s'])"
    " THEN {whole}(it['v'] * it['s']) / it['s'] ELSE it['v'] END"
    " WHEN it['n'] < 0 THEN {whole}(it['v'] / it['s']) * it['s'] END)[1]"
)
_WHOLE_AT_DIGITS = (
    "list_transform([{{'v': CAST(@ AS HUGEINT), 'n': n,"
    " 'u': CAST(pow(10.0, greatest(0, least(-n, 20))) AS HUGEINT)}}], lambda it:"
    " CASE WHEN it['n'] >= 0 THEN it['v'] WHEN it['n'] < 0 THEN"
    " sign(it['v']) * ((abs(it['v']){half}) // it['u'] * it['u']) END)[1]"
)


def at_digits(name: str, whole: str, *, nearest: bool) -> DuckForm:
    """Return the form of a function that rounds or cuts at a digit, `n` behind the point."""
    return by_type(
        name,
        _WHOLE_AT_DIGITS.format(half=" + it['u'] // 2" if nearest else ""),
        _AT_DIGITS.format(whole=whole),
        ", n",
    )

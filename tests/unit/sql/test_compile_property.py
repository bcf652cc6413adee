"""Random expressions: what polars computes over a frame equals a row-by-row evaluation in plain
Python.

Each strategy makes the SQL text together with a Python function of one row, so the two sides share
nothing but the text.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import SqlError
from penstock.sql.compile import compile_expression
from penstock.sql.functions import REGISTRY
from penstock.types import ColumnType
from tests.nightly import drawn
from tests.unit.sql import test_compile as examples

COLUMNS = {
    "i": ColumnType("INT"),
    "j": ColumnType("BIGINT"),
    "u": ColumnType("TINYINT UNSIGNED"),
    "d": ColumnType("DOUBLE"),
    "b": ColumnType("BOOL"),
    "s": ColumnType("VARCHAR", length=20),
    "n": ColumnType("NCHAR", length=20),
    "ts": ColumnType("TIMESTAMP"),
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Made:
    sql: str
    eval: Callable[[Row], Any]


def _null_in(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*values: Any) -> Any:
        return None if any(v is None for v in values) else function(*values)

    return call


def _divide(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def _remainder(a: float, b: float) -> float | None:
    return None if b == 0 else math.fmod(a, b)


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _or(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def _like(text: str, pattern: str) -> bool:
    expression = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern)
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _column(name: str) -> Made:
    return Made(name, lambda row: row[name])


def _binary(operator: str, function: Callable[[Any, Any], Any], a: Made, b: Made) -> Made:
    safe = _null_in(function)
    return Made(f"({a.sql} {operator} {b.sql})", lambda row: safe(a.eval(row), b.eval(row)))


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: float(a) + float(b),
    "-": lambda a, b: float(a) - float(b),
    "*": lambda a, b: float(a) * float(b),
    "/": lambda a, b: _divide(float(a), float(b)),
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}

_integers = st.one_of(
    st.sampled_from([_column("i"), _column("j"), _column("u")]),
    st.integers(-1000, 1000).map(lambda v: Made(str(v) if v >= 0 else f"({v})", lambda row: v)),
)
_leaf_numbers = st.one_of(
    _integers,
    st.just(_column("d")),
    st.just(Made("NULL", lambda row: None)),
    st.floats(-100, 100, allow_nan=False)
    .map(lambda v: round(v, 3))
    .map(lambda v: Made(f"({v!r})" if v < 0 else repr(v), lambda row: v)),
)


@st.composite
def _call_number(
    draw: st.DrawFn, numbers: st.SearchStrategy[Made], texts: st.SearchStrategy[Made]
) -> Made:
    kind = draw(
        st.sampled_from(
            [
                "abs",
                "mod",
                "sign",
                "floor",
                "sqrt",
                "char_length",
                "length",
                "position",
                "greatest",
                "%",
            ]
        )
    )
    if kind in ("char_length", "length"):
        t = draw(texts)
        size = _null_in(len if kind == "char_length" else lambda v: len(v.encode()))
        return Made(f"{kind}({t.sql})", lambda row: size(t.eval(row)))
    if kind == "position":
        what = draw(texts)
        t = draw(texts)
        find = _null_in(lambda a, b: b.find(a) + 1)
        return Made(
            f"position({what.sql} IN {t.sql})", lambda row: find(what.eval(row), t.eval(row))
        )
    a = draw(numbers)
    if kind in ("mod", "%"):
        # The two ways to compute a remainder differ in the last digits of large quotients; whole
        # numbers are exact.
        x = draw(_integers)
        y = draw(_integers)
        rest = _null_in(_remainder)
        sql = f"mod({x.sql}, {y.sql})" if kind == "mod" else f"({x.sql} % {y.sql})"
        return Made(sql, lambda row: rest(x.eval(row), y.eval(row)))
    if kind == "greatest":
        b = draw(numbers)
        larger = _null_in(max)
        return Made(f"greatest({a.sql}, {b.sql})", lambda row: larger(a.eval(row), b.eval(row)))
    functions: dict[str, Callable[[Any], Any]] = {
        "abs": abs,
        "sign": lambda v: (v > 0) - (v < 0),
        "floor": math.floor,
        "sqrt": lambda v: math.sqrt(v) if v >= 0 else None,
    }
    safe = _null_in(functions[kind])
    return Made(f"{kind}({a.sql})", lambda row: safe(a.eval(row)))


@st.composite
def _call_text(draw: st.DrawFn, texts: st.SearchStrategy[Made]) -> Made:
    kind = draw(
        st.sampled_from(["upper", "lower", "concat", "substr", "replace", "repeat", "ltrim"])
    )
    a = draw(texts)
    if kind == "concat":
        b = draw(texts)
        joined = _null_in(lambda x, y: x + y)
        return Made(f"concat({a.sql}, {b.sql})", lambda row: joined(a.eval(row), b.eval(row)))
    if kind == "substr":
        at = draw(st.integers(1, 4))
        size = draw(st.integers(0, 4))
        part = _null_in(lambda v: v[at - 1 : at - 1 + size])
        return Made(f"substr({a.sql}, {at}, {size})", lambda row: part(a.eval(row)))
    if kind == "replace":
        b = draw(texts)
        c = draw(texts)
        swap = _null_in(lambda x, y, z: x if y == "" else x.replace(y, z))
        return Made(
            f"replace({a.sql}, {b.sql}, {c.sql})",
            lambda row: swap(a.eval(row), b.eval(row), c.eval(row)),
        )
    if kind == "repeat":
        count = draw(st.integers(-1, 3))
        again = _null_in(lambda v: v * max(count, 0))
        return Made(f"repeat({a.sql}, {count})", lambda row: again(a.eval(row)))
    functions: dict[str, Callable[[str], str]] = {
        "upper": str.upper,
        "lower": str.lower,
        "ltrim": lambda v: v.lstrip(" "),
    }
    safe = _null_in(functions[kind])
    return Made(f"{kind}({a.sql})", lambda row: safe(a.eval(row)))


_words = st.text(alphabet="abAB é_%x ", max_size=4)
_leaf_texts = st.one_of(
    st.sampled_from([_column("s"), _column("n")]),
    _words.map(lambda v: Made(f"'{v}'", lambda row: v)),
)
_texts = st.recursive(_leaf_texts, _call_text, max_leaves=4)


@st.composite
def _arithmetic(draw: st.DrawFn, numbers: st.SearchStrategy[Made]) -> Made:
    operator = draw(st.sampled_from(sorted(_ARITHMETIC)))
    return _binary(operator, _ARITHMETIC[operator], draw(numbers), draw(numbers))


@st.composite
def _choice(
    draw: st.DrawFn, numbers: st.SearchStrategy[Made], conditions: st.SearchStrategy[Made]
) -> Made:
    a = draw(conditions)
    b = draw(numbers)
    c = draw(numbers)
    kind = draw(st.sampled_from(["if", "case", "coalesce", "nvl2"]))
    if kind == "coalesce":
        return Made(
            f"coalesce({b.sql}, {c.sql})",
            lambda row: b.eval(row) if b.eval(row) is not None else c.eval(row),
        )
    if kind == "nvl2":
        return Made(
            f"nvl2({a.sql}, {b.sql}, {c.sql})",
            lambda row: b.eval(row) if a.eval(row) is not None else c.eval(row),
        )
    sql = (
        f"if({a.sql}, {b.sql}, {c.sql})"
        if kind == "if"
        else f"CASE WHEN {a.sql} THEN {b.sql} ELSE {c.sql} END"
    )
    return Made(sql, lambda row: b.eval(row) if a.eval(row) is True else c.eval(row))


@st.composite
def _comparison(draw: st.DrawFn, numbers: st.SearchStrategy[Made]) -> Made:
    kind = draw(st.sampled_from(["number", "text", "null", "in", "between", "like", "time"]))
    operator = draw(st.sampled_from(sorted(_COMPARE)))
    if kind == "text":
        return _binary(operator, _COMPARE[operator], draw(_texts), draw(_texts))
    if kind == "time":
        ticks = draw(st.integers(0, 2_000_000_000_000))
        return _binary(
            operator, _COMPARE[operator], _column("ts"), Made(str(ticks), lambda row: ticks)
        )
    a = draw(numbers)
    if kind == "null":
        return Made(f"({a.sql} IS NULL)", lambda row: a.eval(row) is None)
    if kind == "in":
        values = draw(st.lists(st.integers(-5, 5), min_size=1, max_size=12))
        among = _null_in(lambda v: v in values)
        x = draw(_integers)
        return Made(f"({x.sql} IN ({', '.join(map(str, values))}))", lambda row: among(x.eval(row)))
    if kind == "between":
        b = draw(_integers)
        c = draw(_integers)
        above = _null_in(lambda v, low: v >= low)
        below = _null_in(lambda v, high: v <= high)
        sql = f"({a.sql} BETWEEN {b.sql} AND {c.sql})"
        return Made(
            sql, lambda row: _and(above(a.eval(row), b.eval(row)), below(a.eval(row), c.eval(row)))
        )
    if kind == "like":
        t = draw(_texts)
        pattern = draw(_words)
        like = _null_in(lambda v: _like(v, pattern))
        return Made(f"({t.sql} LIKE '{pattern}')", lambda row: like(t.eval(row)))
    return _binary(operator, _COMPARE[operator], a, draw(numbers))


@st.composite
def _logic(draw: st.DrawFn, conditions: st.SearchStrategy[Made]) -> Made:
    a = draw(conditions)
    b = draw(conditions)
    kind = draw(st.sampled_from(["AND", "OR", "NOT"]))
    if kind == "NOT":
        return Made(f"(NOT {a.sql})", lambda row: None if a.eval(row) is None else not a.eval(row))
    join = _and if kind == "AND" else _or
    return Made(f"({a.sql} {kind} {b.sql})", lambda row: join(a.eval(row), b.eval(row)))


_simple_numbers = st.recursive(
    _leaf_numbers, lambda n: st.one_of(_arithmetic(n), _call_number(n, _texts)), max_leaves=5
)
_conditions = st.recursive(
    st.one_of(_comparison(_simple_numbers), st.just(_column("b"))), _logic, max_leaves=5
)
_numbers = st.one_of(_simple_numbers, _choice(_simple_numbers, _conditions))
_expressions = st.one_of(_numbers, _conditions, _texts)


def _optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


_rows = st.lists(
    st.fixed_dictionaries(
        {
            "i": _optional(st.integers(-(2**31), 2**31 - 1)),
            "j": _optional(st.integers(-(2**40), 2**40)),
            "u": _optional(st.integers(0, 255)),
            "d": _optional(st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 2))),
            "b": _optional(st.booleans()),
            "s": _optional(_words),
            "n": _optional(_words),
            "ts": _optional(st.integers(0, 2_000_000_000_000)),
        }
    ),
    min_size=1,
    max_size=6,
)


def _same(found: Any, wanted: Any) -> bool:
    if found is None or wanted is None:
        return found is None and wanted is None
    if isinstance(wanted, str | bool):
        return found == wanted and type(found) is type(wanted)
    return math.isclose(found, wanted, rel_tol=1e-9, abs_tol=1e-9)


@settings(max_examples=drawn(100), deadline=None)
@given(made=_expressions, rows=_rows)
def test_as_row_by_row(made: Made, rows: list[Row]) -> None:
    frame = pl.DataFrame(rows, schema={name: kind.polars() for name, kind in COLUMNS.items()})
    compiled = compile_expression(made.sql, COLUMNS)
    found = frame.with_columns(compiled.expr.alias("_x")).get_column("_x")
    assert found.dtype == compiled.type.polars() or found.dtype == pl.Null, (
        made.sql,
        compiled.type,
    )
    for value, row in zip(found.to_list(), rows, strict=True):
        assert _same(value, made.eval(row)), (made.sql, row, value, made.eval(row))


_ATOMS = [
    *examples.COLUMNS,
    "'x'",
    "'2020-01-01'",
    "1",
    "-2.5",
    "NULL",
    "now",
    "1h",
    "TRUE",
    "j->'k'",
    "'a,b'",
    "''",
]
_ATOMS[_ATOMS.index("Ab C")] = "`Ab C`"
_OPERATORS = ["+", "-", "*", "/", "%", "=", "<", ">", "<>", "AND", "OR", "LIKE", "&"]
_TYPES = (
    "INT TINYINT BIGINT FLOAT DOUBLE DECIMAL(10,2) BOOL TIMESTAMP VARCHAR(3) NCHAR(2) VARBINARY(4)".split()
    + ["BIGINT UNSIGNED"]
)


def _any_expression(rng: random.Random, depth: int) -> str:
    """Text that keeps the grammar but cares about no type."""

    def inner() -> str:
        return _any_expression(rng, depth - 1)

    kind = rng.random()
    if depth <= 0 or kind < 0.2:
        return rng.choice(_ATOMS)
    if kind < 0.65:
        function = REGISTRY[rng.choice(sorted(REGISTRY))]
        least, most = function.arity
        return f"{function.name}({', '.join(inner() for _ in range(rng.randint(least, min(most, least + 2))))})"
    if kind < 0.8:
        return f"({inner()} {rng.choice(_OPERATORS)} {inner()})"
    if kind < 0.9:
        return f"CAST({inner()} AS {rng.choice(_TYPES)})"
    return (
        f"CASE WHEN {inner()} THEN {inner()} ELSE {inner()} END"
        if kind < 0.95
        else f"({inner()} IN ({inner()}, {inner()}))"
    )


def test_what_compiles_computes() -> None:
    """Whatever is accepted can be computed over any frame, the empty one too, and has the type it
    says; all else is a SqlError.
    """
    rng = random.Random(20240131)
    accepted = 0
    for _ in range(drawn(1000)):
        sql = _any_expression(rng, rng.randint(1, 3))
        try:
            compiled = compile_expression(sql, examples.COLUMNS)
        except SqlError:
            continue
        accepted += 1
        for frame in (examples.FRAME, examples.FRAME.clear()):
            found = frame.with_columns(compiled.expr.alias("_x")).get_column("_x")
            assert (found.dtype, found.len()) == (compiled.type.polars(), frame.height), sql
    assert accepted > drawn(1000) // 4

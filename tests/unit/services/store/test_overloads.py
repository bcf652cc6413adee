"""Calls in calls cost DuckDB as much a level, however deep they are, and keep their type."""

from __future__ import annotations

import math
import time

import duckdb
import pytest
from sqlglot import exp

from penstock.sql.functions import AGGREGATES, QUERY_FUNCTIONS
from penstock.sql.functions.duckdb import Macro
from penstock.sql.relational import Binding
from penstock.sql.relational.bindings import note
from penstock.sql.source import Source
from penstock.types import ColumnType
from services.store.binding import Context
from services.store.functions import FUNCTIONS
from services.store.overloads import with_form
from tests.installing import install

DEPTH = 40
#: CPU seconds; what doubles with each level would take years
PATIENCE = 10.0
#: function → its further arguments, and what many levels make of a value
NUMBERS: dict[str, tuple[tuple[float, ...], float, float]] = {
    "abs": ((), -2.5, 2.5),
    "sign": ((), -2.5, -1.0),
    "ceil": ((), 1.5, 2.0),
    "floor": ((), 1.5, 1.0),
    "round": ((), 2.5, 3.0),
    "truncate": ((1,), 1.57, 1.5),
    "pow": ((1,), 1.5, 1.5),
    "mod": ((5,), 7.0, 2.0),
    "log": ((), 1.0, math.nan),
    "atan": ((), 0.0, 0.0),
    "sqrt": ((), 1.0, 1.0),
    "degrees": ((), 0.0, 0.0),
}
#: names of the same functions
ALIASES = {"ceiling", "power", "trunc"}


def nest(name: str, kind: ColumnType, more: tuple[float, ...], context: Context) -> exp.Expr:
    """Return DEPTH calls in each other around the column `v`, as DuckDB gets them."""
    asked: exp.Expr = exp.column("v")
    made: exp.Expr = exp.column("v")
    note(asked, Binding(kind))
    for _ in range(DEPTH):
        numbers = [exp.Literal.number(number) for number in more]
        call = exp.Anonymous(this=name, expressions=[asked, *numbers])
        note(call, Binding(kind))
        made = FUNCTIONS[name]([made, *(n.copy() for n in numbers)], context)
        made = with_form(made, call, context)
        asked = call
    return made


def answer(node: exp.Expr, context: Context, kind: str, value: object) -> tuple[object, str]:
    """Return what DuckDB computes where `v` is *value*, and the type of that."""
    con = duckdb.connect(config={"threads": 1})
    try:
        install(con, context.needed.values(), Source(""))
        con.execute(f"CREATE TABLE t AS SELECT CAST(? AS {kind}) AS v", [value])
        begin = time.process_time()
        found = con.execute(f"SELECT x, typeof(x) FROM (SELECT {node.sql('duckdb')} AS x FROM t)")
        row = found.fetchone()
        assert time.process_time() - begin < PATIENCE
        assert row is not None
        return row
    finally:
        con.close()


@pytest.mark.parametrize("name", NUMBERS)
def test_calls_of_numbers(name: str) -> None:
    more, value, expected = NUMBERS[name]
    context = Context({}, "UTC")
    made = nest(name, ColumnType("DOUBLE"), more, context)
    found, kind = answer(made, context, "DOUBLE", value)
    assert kind == "DOUBLE"
    assert found == expected or (found is None and math.isnan(expected))


@pytest.mark.parametrize("name", ["abs", "ceil", "round", "sign"])
def test_they_keep_the_type_of_whole_numbers(name: str) -> None:
    context = Context({}, "UTC")
    made = nest(name, ColumnType("SMALLINT"), (), context)
    found, kind = answer(made, context, "SMALLINT", -3)
    expected = {"abs": 3, "sign": -1}.get(name, -3)
    assert (found, kind) == (expected, "SMALLINT")


def test_a_value_without_an_opposite_is_null() -> None:
    context = Context({}, "UTC")
    made = nest("abs", ColumnType("TINYINT"), (), context)
    assert answer(made, context, "TINYINT", -128) == (None, "TINYINT")


def test_parts_of_texts() -> None:
    context = Context({}, "UTC")
    made = nest("substr", ColumnType("VARCHAR", 100), (2,), context)
    assert answer(made, context, "VARCHAR", "x" * DEPTH + "end") == ("end", "VARCHAR")


def test_every_function_whose_macro_is_chosen_by_type_is_played_here() -> None:
    chosen = set()
    for name, make in FUNCTIONS.items():
        for count in (1, 2):
            context = Context({}, "UTC")
            args: list[exp.Expr] = [exp.column("v"), exp.Literal.number(1)]
            try:
                make(args[:count], context)
            except Exception:  # an aggregate, or another number of arguments
                continue
            macros = [m for m in context.needed.values() if isinstance(m, Macro)]
            if any("(x DOUBLE" in form for m in macros for form in m.overloads):
                chosen.add(name)
    numbers = {name for name in chosen if name not in {*AGGREGATES, *QUERY_FUNCTIONS}}
    assert numbers <= NUMBERS.keys() | ALIASES
    assert {"abs", "round", "truncate"} <= numbers

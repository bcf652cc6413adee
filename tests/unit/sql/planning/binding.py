"""Statements bound to one source, for the tests of the planner's steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from penstock.sql.parser import parse_one
from penstock.sql.plan import Column
from penstock.sql.planning.context import PlanningContext
from penstock.sql.planning.select import (
    PartitionKeys,
    SelectList,
    WindowSelect,
    plan_keys,
    select_rows,
)
from penstock.sql.planning.target.request import TargetRequest
from penstock.sql.planning.view import TableDef
from penstock.sql.planning.windows import plan_window
from penstock.sql.relational import StreamSelect
from penstock.sql.statements import CreateStream
from penstock.types import ColumnType
from penstock.udf import UserFunction
from tests.unit.sql.memory_view import MemoryView
from tests.unit.sql.reading import refusal

INT = ColumnType("INT")
MET = TableDef(
    501,
    "db",
    "met",
    "stable",
    (
        Column("ts", ColumnType("TIMESTAMP")),
        Column("Amps", INT),
        Column("b", INT),
        Column("d", ColumnType("DOUBLE")),
        Column("s", ColumnType("VARCHAR", length=20)),
    ),
    (Column("ta", INT), Column("tb", ColumnType("VARCHAR", length=20))),
)
TAGGED = TableDef(502, "db", "js", "stable", MET.columns, (Column("j", ColumnType("JSON")),))
PLAIN = TableDef(503, "db", "p", "plain", MET.columns)
HALF = UserFunction(1, "half", (ColumnType("DOUBLE"),), ColumnType("DOUBLE"), "…")
MIDDLE = UserFunction(
    2, "Middle", (ColumnType("DOUBLE"),), ColumnType("DOUBLE"), "…", aggregate=True
)
_FUNCTIONS = {"half": HALF, "middle": MIDDLE}


def statement(tail: str, head: str = "") -> CreateStream:
    """`CREATE STREAM s <head> INTO o AS SELECT <tail>`."""
    made = parse_one(
        f"CREATE STREAM s {head} AS SELECT {tail}"
        if "INTO" in head
        else f"CREATE STREAM s {head} INTO o AS SELECT {tail}"
    )
    assert isinstance(made, CreateStream)
    return made


def context(made: CreateStream, source: TableDef = MET) -> PlanningContext:
    """The context of *made* over *source*, whatever its FROM says."""
    return PlanningContext(made, source, (source.name, "m"), "UTC", _FUNCTIONS.get)


def bound(made: CreateStream, source: TableDef = MET) -> StreamSelect:
    """The bound SELECT of *made* over *source*."""
    return context(made, source).bind(select_of(made))


def select_of(made: CreateStream) -> exp.Select:
    assert isinstance(made.query, exp.Select)
    return made.query


def keys_of(made: CreateStream, source: TableDef = MET) -> PartitionKeys:
    return plan_keys(context(made, source), bound(made, source))


def select_list(made: CreateStream, source: TableDef = MET) -> tuple[SelectList, PartitionKeys]:
    """The planned select list, and the partition keys."""
    asked = request(made, source=source)
    return asked.selection, asked.keys


def request(
    made: CreateStream, view: MemoryView | None = None, source: TableDef = MET
) -> TargetRequest:
    """All that decides about the target of *made*."""
    of = context(made, source)
    query = of.bind(select_of(made))
    keys = plan_keys(of, query)
    if query.window is None:
        listed = select_rows(of, query)
    else:
        listed = WindowSelect(of, keys, plan_window(query.window, of)).run(query)
    return TargetRequest(
        made, of, view or MemoryView(), "db", keys, listed, windowed=query.window is not None
    )


def refused_at(made: CreateStream, call: Callable[[], Any]) -> tuple[str, str]:
    """Code of the refusal of *call*, and the text that it points at, up to 12 characters."""
    error = refusal(call)
    lines = made.source.text.split("\n")
    at = lines[error.line - 1][error.column - 1 :] if error.line else ""
    return error.code, at[:12]

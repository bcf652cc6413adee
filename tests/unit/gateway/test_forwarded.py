"""What arrives from another gateway is run here for its user, and goes no further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from gateway.forward import column_to_json
from gateway.forwarded import ForwardedDefinitions
from gateway.statements.context import RequestContext
from penstock.catalog.changes import Change
from penstock.catalog.model import CompatibilityLevel, Database, Table
from penstock.catalog.view import Catalog
from penstock.sql.plan import Column
from penstock.types import ColumnType


class _Executor:
    def __init__(self) -> None:
        self.ran: list[tuple[str, RequestContext]] = []

    async def run(self, sql: str, context: RequestContext) -> None:
        self.ran.append((sql, context))


class _Definer:
    """Decides at once, in the caller's thread."""

    def __init__(self) -> None:
        self.catalog = Catalog([Database(1, "d")])
        self.user = ""
        self.changes: list[Change] = []

    async def run(self, action: Callable[[], None], user: str) -> None:
        self.user = user
        action()

    def decide(self, rule: Callable[..., Change]) -> Change:
        ids = iter(range(100, 200))
        change = rule(self.catalog, lambda: next(ids))
        self.changes.append(change)
        return change


def forwarded() -> tuple[ForwardedDefinitions, _Executor, _Definer]:
    executor = _Executor()
    definer = _Definer()
    return ForwardedDefinitions(*cast(Any, (executor, definer))), executor, definer


async def test_a_statement_runs_as_it_came() -> None:
    definitions, executor, _ = forwarded()
    await definitions.run(
        {"sql": "DROP TABLE t", "database": "d", "timezone": "Asia/Tokyo", "user": "ann"}, {}
    )
    assert executor.ran == [
        (
            "DROP TABLE t",
            RequestContext("d", "Asia/Tokyo", user="ann", remote="gateway", forwarded=True),
        )
    ]


async def test_where_a_statement_has_written_is_told() -> None:
    definitions, executor, _ = forwarded()
    own: dict[tuple[str, int], int] = {}
    await definitions.run({"sql": "ALTER TABLE c SET TAG g = 1", "user": "ann"}, own)
    assert executor.ran[0][1].own is own


async def test_what_a_statement_does_not_say_is_not_made_up() -> None:
    definitions, executor, _ = forwarded()
    await definitions.run({"sql": "SHOW DATABASES", "database": "", "timezone": None}, {})
    (_, context) = executor.ran[0]
    assert (context.database, context.timezone, context.user) == (None, "UTC", "")


async def test_a_table_of_line_protocol_is_made_with_its_columns_and_tags() -> None:
    definitions, executor, definer = forwarded()
    time = Column("ts", ColumnType("TIMESTAMP"))
    value = Column("v", ColumnType("DOUBLE"))
    tag = Column("host", ColumnType("VARCHAR", 64))
    asked = {"database": "d", "table": "cpu"} | {
        name: [column_to_json(column)]
        for name, column in (("time", time), ("columns", value), ("tags", tag))
    }
    await definitions.run({"widen": asked, "user": "ann"}, {})
    (table,) = [put for put in definer.changes[0].puts if isinstance(put, Table)]
    assert (table.name, table.columns, table.tags) == ("cpu", (time, value), (tag,))
    assert definer.user == "ann" and executor.ran == []


async def test_a_level_of_the_registry_is_set_and_cleared_for_its_user() -> None:
    definitions, _, definer = forwarded()
    await definitions.run({"compatibility": {"table": 7, "level": "FULL"}, "user": "ann"}, {})
    (change,) = definer.changes
    assert definer.user == "ann" and change.puts == (CompatibilityLevel(100, 7, "FULL"),)
    definer.catalog.put(change.puts[0])
    await definitions.run({"compatibility": {"table": 7, "level": None}, "user": "ann"}, {})
    assert definer.changes[-1].removes == change.puts

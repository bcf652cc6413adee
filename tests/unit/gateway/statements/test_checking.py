"""Statements looked at and not run, over a real store: mistakes with their places, columns with their
types, and nobody learns more than by running them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.statements.checking import MOST_STATEMENTS, CheckedStatement
from gateway.statements.context import RequestContext
from gateway.statements.mistakes import describe, kind_of, shift_up
from penstock.errors import PenstockError, RemoteError, SqlSemanticError, SqlSyntaxError
from penstock.sql import parse
from tests.sql.memory_mesh import FollowingStore
from tests.unit.gateway.kit import ROOT, MemoryGateway
from tests.unit.gateway.statements.kit import Statements


class Checked:
    def __init__(self, directory: Path) -> None:
        loop = asyncio.get_running_loop()
        self.gateway = MemoryGateway(directory, loop=loop)
        self.statements = Statements(self.gateway, FollowingStore(directory, self.gateway), loop)
        self.gateway.define(
            "CREATE DATABASE d PARTITIONS 2; CREATE DATABASE e PARTITIONS 2;"
            " CREATE TABLE p (ts TIMESTAMP, a INT, temp DOUBLE, big BIGINT UNSIGNED);"
            " CREATE STABLE met (ts TIMESTAMP, a INT) TAGS (site VARCHAR(8));"
            " CREATE TABLE e.q (ts TIMESTAMP, b INT)"
        )

    async def check(self, text: str, **context: Any) -> list[CheckedStatement]:
        given = {"database": "d", "user": ROOT} | context
        return await self.statements.checker.check(text, RequestContext(**given))

    async def mistake(self, text: str, **context: Any) -> dict[str, Any]:
        """The only mistake of a text that is one statement."""
        (one,) = await self.check(text, **context)
        assert one.mistake is not None
        return describe(one.mistake, 0)

    async def columns(self, text: str) -> list[tuple[str, str]] | None:
        (one,) = await self.check(text)
        assert one.mistake is None
        return one.columns


@pytest.fixture
async def checked(tmp_path: Path) -> AsyncIterator[Checked]:
    made = Checked(tmp_path)
    yield made
    made.statements.close()


# -------------------------------------------------------------------- what is right


async def test_a_select_tells_its_columns(checked: Checked) -> None:
    assert await checked.columns("SELECT * FROM p") == [
        ("ts", "TIMESTAMP"),
        ("a", "INT"),
        ("temp", "DOUBLE"),
        ("big", "BIGINT UNSIGNED"),
    ]
    assert await checked.columns("SELECT count(*) AS n, avg(temp) FROM d.p") == [
        ("n", "BIGINT"),
        ("avg(temp)", "DOUBLE"),
    ]
    windows = "SELECT _wstart, count(*) AS n, site FROM met PARTITION BY site INTERVAL(10s)"
    assert await checked.columns(windows) == [
        ("_wstart", "TIMESTAMP"),
        ("n", "BIGINT"),
        ("site", "VARCHAR(8)"),
    ]


async def test_a_select_from_a_stream_tells_what_is_followed(checked: Checked) -> None:
    checked.gateway.define(
        "CREATE STREAM tens INTO r AS"
        " SELECT _wstart, avg(a) AS mean FROM met PARTITION BY site INTERVAL(10s)"
    )
    (one,) = await checked.check("SELECT * FROM tens", database="D")
    assert one.mistake is None and one.follows is not None and one.columns is None
    assert (one.follows.table.database, one.follows.table.name) == ("d", "r")
    result = one.follows.table
    own = [column.name for column in (*result.columns, *result.tags)]
    assert one.follows.columns == ("tbname", *own) and own[:2] == ["_wstart", "mean"]
    _, two = await checked.check("USE d; SELECT Mean, `tbname`, mean FROM D.Tens;")
    assert two.follows is not None and two.follows.columns == ("mean", "tbname")
    (table,) = await checked.check("SELECT * FROM r")
    assert table.follows is None and table.columns is not None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT other FROM tens", "E_UNKNOWN_COLUMN"),
        ("SELECT mean AS m FROM tens", "E_UNSUPPORTED_QUERY"),
        ("SELECT avg(mean) FROM tens", "E_UNSUPPORTED_QUERY"),
        ("SELECT mean FROM tens WHERE mean > 1", "E_UNSUPPORTED_QUERY"),
        ("SELECT mean FROM tens LIMIT 1", "E_UNSUPPORTED_QUERY"),
        ("SELECT DISTINCT mean FROM tens", "E_UNSUPPORTED_QUERY"),
        ("SELECT mean FROM tens INTERVAL(1m)", "E_UNSUPPORTED_QUERY"),
    ],
)
async def test_a_stream_is_followed_by_columns_alone(
    checked: Checked, text: str, code: str
) -> None:
    checked.gateway.define(
        "CREATE STREAM tens INTO r AS SELECT _wstart, avg(a) AS mean FROM p INTERVAL(10s)"
    )
    assert (await checked.mistake(text))["code"] == code


async def test_who_may_not_read_a_result_does_not_learn_what_follows_it(checked: Checked) -> None:
    checked.gateway.define(
        "CREATE STREAM tens INTO r AS SELECT _wstart, avg(a) AS mean FROM p INTERVAL(10s);"
        " CREATE USER ann PASS 'Some-w0rds!'"
    )
    mistake = await checked.mistake("SELECT nothing FROM tens", user="ann")
    assert mistake["code"] == "E_FORBIDDEN" and "mean" not in str(mistake)


async def test_a_select_over_lists_tells_them_too(checked: Checked) -> None:
    found = await checked.columns(
        "SELECT stream_name, count(*) AS n FROM information_schema.ins_streams GROUP BY 1"
    )
    assert found is not None and [name for name, _ in found] == ["stream_name", "n"]
    assert found[1][1] == "BIGINT"
    assert await checked.columns("SELECT 1") is not None


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO p VALUES (1, 2, 3, 4)",
        "INSERT INTO p SELECT * FROM p",
        "CREATE TABLE another (ts TIMESTAMP, a INT)",
        "CREATE STREAM s INTO r AS SELECT _wstart, avg(a) FROM p INTERVAL(10s)",
        "EXPLAIN SELECT a FROM p",
        "EXPLAIN CREATE STREAM s INTO r AS SELECT _wstart, avg(a) FROM p INTERVAL(10s)",
        "DESCRIBE p",
        "DROP TABLE p",
        "DELETE FROM p",
        "CREATE DATABASE f",
    ],
)
async def test_nothing_is_done(checked: Checked, text: str) -> None:
    before = len(checked.gateway.writer.changes)
    assert await checked.columns(text) is None
    assert len(checked.gateway.writer.changes) == before
    assert checked.statements.rows("p") == [] and checked.statements.publisher.confirmed.rows == 0


async def test_use_counts_for_what_stands_behind_it(checked: Checked) -> None:
    one, two, three = await checked.check("SELECT a FROM p; USE e; SELECT b FROM q")
    assert (one.columns, three.columns) == ([("a", "INT")], [("b", "INT")])
    assert two.mistake is None and not three.mistake


# -------------------------------------------------------------------- what is wrong


async def test_each_statement_has_its_own_mistake(checked: Checked) -> None:
    text = "SELECT nothing FROM p;\nSELEKT 1;\n\n  SELECT a, tmep\n  FROM p; SELECT a FROM p"
    found = await checked.check(text)
    assert [text[one.start : one.end].split()[0] for one in found] == [
        "SELECT",
        "SELEKT",
        "SELECT",
        "SELECT",
    ]
    told = [describe(one.mistake, i) for i, one in enumerate(found) if one.mistake is not None]
    assert [(m["statement"], m["line"], m["column"], m["length"]) for m in told] == [
        (0, 1, 8, len("nothing")),
        (1, 2, 1, len("SELEKT")),
        (2, 4, 13, len("tmep")),
    ]
    assert told[2]["code"] == "E_UNKNOWN_COLUMN" and told[2]["nearest"] == "temp"
    assert told[1]["nearest"] == "SELECT" and found[1].statement is None
    assert found[3].columns == [("a", "INT")]


@pytest.mark.parametrize(
    ("text", "code", "nearest"),
    [
        ("SELECT a FROM pp", "E_TABLE_NOT_EXIST", "p"),
        ("SELECT averag(a) FROM p", None, None),
        ("SELECT summ(a) FROM p", None, "sum"),
        ("INSERT INTO p (ts, tempp) VALUES (1, 2)", "E_NO_COLUMN", None),
        ("INSERT INTO p VALUES (1)", "E_ROW", None),
        ("EXPLAIN SELECT aa FROM p", "E_UNKNOWN_COLUMN", "a"),
        ("CREATE STREAM s INTO r AS SELECT _wstart, avg(x) FROM p INTERVAL(10s)", None, None),
        ("DESCRIBE nothing", "E_NO_TABLE", None),
        ("USE nowhere", "E_NO_DATABASE", None),
        ("SELECT a FROM p WHERE ts > ?", "E_PARAMETER", None),
        ("SELECT a FROM p WHERE (", None, None),
    ],
)
async def test_mistakes(checked: Checked, text: str, code: str | None, nearest: str | None) -> None:
    found = await checked.mistake(text)
    assert code is None or found["code"] == code, found
    assert nearest is None or found["nearest"] == nearest, found
    assert 0 <= found["column"] <= len(text) + 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT b FROM e.q",
        "SELECT nothing FROM e.q",
        "SELECT b FROM e.nothing",
        "INSERT INTO e.q VALUES (1, 2)",
        "CREATE STREAM e.s INTO e.r AS SELECT _wstart, avg(b) FROM e.q INTERVAL(10s)",
        "DROP TABLE e.q",
        "CREATE USER eve PASS 'long enough'",
    ],
)
async def test_who_may_not_run_it_learns_no_more(checked: Checked, text: str) -> None:
    ann = checked.gateway.allow("ann", "READ", on=checked.gateway.catalog.database("d").id)  # type: ignore[union-attr]
    found = await checked.mistake(text, user=ann)
    assert found["code"] == "E_FORBIDDEN"
    assert await checked.check("SELECT a FROM p", user=ann)


async def test_a_store_that_is_away_is_no_mistake(
    checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(user: str, question: object) -> None:
        raise RemoteError("the store cannot be reached", code="E_STORE_DOWN")

    monkeypatch.setattr(checked.statements.store, "select_for", away)
    with pytest.raises(RemoteError):
        await checked.check("SELECT a FROM p")


@pytest.mark.parametrize("text", ["SELECT 1;" * (MOST_STATEMENTS + 1), "x" * 300_000])
async def test_there_is_an_end_to_it(checked: Checked, text: str) -> None:
    with pytest.raises(SqlSyntaxError) as refused:
        await checked.check(text)
    assert refused.value.code == "E_TOO_LONG"


@pytest.mark.parametrize("text", ["\0", "'", "((((" * 5000, "SELECT '\U0001f600' FROM", "--", ";;"])
async def test_hostile_text_is_text(checked: Checked, text: str) -> None:
    for one in await checked.check(text):
        assert isinstance(one.mistake, PenstockError)


# -------------------------------------------------------------------- parts


@pytest.mark.parametrize(
    ("hint", "nearest"),
    [
        ("did you mean temp?", "temp"),
        ("did you mean sum()?", "sum"),
        ('did you mean "odd name"?', "odd name"),
        ("did you mean p.temp?", "p.temp"),
        ("did you mean SELECT? known here: ALTER, SELECT", "SELECT"),
        ("known here: a, b", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_in_the_hint(hint: str, nearest: str | None) -> None:
    assert describe(SqlSemanticError("x", hint=hint), 0)["nearest"] == nearest


def test_a_place_in_the_store_is_a_place_in_the_text() -> None:
    (_, second) = parse("SELECT 1; SELECT a\nFROM t")
    error = SqlSemanticError("x", line=2, column=8, snippet="a\n^")
    moved = shift_up(error, 1, second)
    assert (moved.line, moved.column) == (1, 18)
    below = shift_up(SqlSemanticError("x", line=3, column=6), 1, second)
    assert (below.line, below.column) == (2, 6)
    nowhere = shift_up(SqlSemanticError("x"), 1, second)
    assert (nowhere.line, nowhere.column) == (0, 0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT 1", "SELECT"),
        ("CREATE STREAM s INTO r AS SELECT count(*) FROM t INTERVAL(1s)", "CREATE STREAM"),
        ("CREATE STABLE m (ts TIMESTAMP, a INT) TAGS (g INT)", "CREATE STABLE"),
        ("CREATE TABLE c USING m TAGS (1)", "CREATE TABLE"),
        ("INSERT INTO t SELECT * FROM t", "INSERT"),
        ("SHOW CREATE TABLE t", "SHOW"),
        ("DROP TABLE t", "DROP"),
    ],
)
def test_kinds(text: str, kind: str) -> None:
    assert kind_of(parse(text)[0]) == kind

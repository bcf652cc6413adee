from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.describing import describe, describe_list, show_create
from gateway.information import columns, like
from gateway.information.schema import Information
from penstock.auth.access import Access
from penstock.catalog.model import (
    Child,
    Database,
    Grant,
    StreamEntry,
    Table,
    TableVersion,
    User,
    View,
)
from penstock.catalog.view import Catalog
from penstock.cli import activity
from penstock.errors import BusError, CatalogError, SqlSemanticError
from penstock.mesh import doctor
from penstock.records import DeadLetter
from penstock.sql import parse_one
from penstock.sql.plan import Column
from penstock.sql.statements import CreateView, Describe, Query, Show, ShowCreate
from penstock.types import ColumnType
from penstock.udf import UserFunction
from tests.unit.gateway.nowhere import NOWHERE
from tests.unit.sql.memory_view import MemoryView, plan

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("DOUBLE")),
    Column("k", ColumnType("INT")),
)
STABLE = Table(
    100,
    "Db",
    "m",
    "stable",
    "in.db",
    4,
    "ms",
    (TableVersion(101, COLUMNS, (Column("site", ColumnType("VARCHAR", 8)),)),),
)
PLAIN = replace(
    STABLE,
    id=102,
    name="p",
    kind="plain",
    versions=(TableVersion(103, COLUMNS),),
    key_column="v",
    topic="in.db.p",
    partitions=2,
)
CATALOG = Catalog([Database(99, "Db"), STABLE, PLAIN, Child(104, "Db", 100, "c1", ("x",))])
INFORMATION = Information(lambda: CATALOG, NOWHERE, "1.0", Access(lambda: CATALOG, "root"), "root")


def ask(text: str, database: str | None = "db") -> list[tuple[Any, ...]]:
    statement = parse_one(text)
    if isinstance(statement, Show):
        answer = INFORMATION.show(statement, database)
    elif isinstance(statement, ShowCreate):
        answer = show_create(INFORMATION.catalog, statement, database, INFORMATION.children.find)
    elif isinstance(statement, Describe):
        answer = describe(STABLE if statement.table.name == "m" else PLAIN)
    else:
        assert isinstance(statement, Query)
        found = INFORMATION.query(statement.query, database)
        assert found is not None
        answer = found
    return [tuple(row.values()) for row in answer.to_pylist()]


def test_lists_that_the_catalog_alone_answers() -> None:
    assert ask("SHOW STABLES") == [("m",)]
    assert ask("SHOW Db.STABLES LIKE '%x%'", None) == []
    assert ask("DESCRIBE m")[-1] == ("site", "VARCHAR", 8, "TAG")
    assert ask("DESCRIBE p")[1] == ("v", "DOUBLE", 8, "COMPOSITE KEY")
    assert ask("SHOW STREAMS") == []
    counts = ask(
        "SELECT db_name, count(*) FROM information_schema.ins_stables GROUP BY db_name ORDER BY 1"
    )
    assert counts == [("Db", 1)]


def test_what_commands_ask_can_be_answered() -> None:
    """`penstock top`, `doctor` and `import` ask by SQL, too."""
    assert ask(activity.STREAMS) == []
    assert ask(doctor.WAITING_EVENTS) == []
    assert ask("SELECT db_name, stable_name FROM information_schema.ins_stables") == [("Db", "m")]


def test_show_create_can_be_run_again() -> None:
    for text in (
        "SHOW CREATE DATABASE db",
        "SHOW CREATE STABLE m",
        "SHOW CREATE TABLE p",
        "SHOW CREATE TABLE c1",
    ):
        parse_one(ask(text)[0][1])
    assert "WITH (topic='own', partitions=2)" in ask("SHOW CREATE TABLE p")[0][1]


@pytest.mark.parametrize("on_error", ["retry", "stop", "drop"])
def test_a_view_is_shown_with_what_it_does_about_rows_that_do_not_fit(on_error: Any) -> None:
    view = View(120, "Db", "up", "SELECT * FROM m", 100, 102, on_error=on_error)
    statement = parse_one("SHOW CREATE MATERIALIZED VIEW up")
    assert isinstance(statement, ShowCreate)
    (shown,) = show_create(
        Catalog([Database(99, "Db"), STABLE, PLAIN, view]), statement, "db", lambda *_: None
    ).to_pylist()
    made = parse_one(list(shown.values())[1])
    assert isinstance(made, CreateView) and made.on_error == (
        None if on_error == "retry" else on_error
    )


def test_information_schema_is_a_database_like_others() -> None:
    listed = sorted((name,) for name in columns.LISTS)
    assert sorted(ask("SHOW information_schema.TABLES", None)) == listed
    assert sorted(ask("SHOW TABLES", "Information_Schema")) == listed
    assert ask("SHOW TABLES LIKE 'ins_t%'", "information_schema") == [
        ("ins_tables",),
        ("ins_tags",),
    ]
    assert ask("SHOW STABLES", "information_schema") == []


@pytest.mark.parametrize(
    ("text", "database"),
    [
        ("SHOW dB2.TABLES", None),
        ("SHOW dB2.STABLES", "Db"),
        ("SHOW TABLES", "dB2"),
        ("SHOW STREAMS FROM dB2", "Db"),
        ("SHOW dB2.VIEWS", None),
        ("SHOW dB2.EXTERNAL STREAMS", None),
    ],
)
def test_a_database_that_is_not_there_has_no_empty_lists(text: str, database: str | None) -> None:
    with pytest.raises(CatalogError, match='no database "dB2"') as missing:
        ask(text, database)
    assert missing.value.code == "E_NO_DATABASE" and "db" in str(missing.value.hint)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "SELECT count(*), MAX( columns ) FROM information_schema.ins_stables",
            ["count(*)", "MAX( columns )"],
        ),
        (
            "SELECT 1+1, 'a', -3, stable_name AS s, 1 b FROM information_schema.ins_stables",
            ["1+1", "'a'", "-3", "s", "b"],
        ),
        (
            "SELECT `count(*)` FROM (SELECT count(*) FROM information_schema.ins_stables)",
            ["count(*)"],
        ),
        ("SELECT count(*) FROM information_schema.ins_stables UNION SELECT 2", ["count(*)"]),
    ],
)
def test_a_column_without_a_name_is_called_as_it_was_written(text: str, names: list[str]) -> None:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    found = INFORMATION.query(statement.query)
    assert found is not None
    assert found.column_names == names
    assert ask("SHOW CHILD TABLES", "information_schema") == []
    assert ask("SELECT stable_name FROM ins_stables", "information_schema") == [("m",)]
    own = "SELECT table_name, columns FROM ins_tables WHERE db_name = 'information_schema'"
    assert ("ins_tags", 6) in ask(own, "information_schema")


def test_every_list_can_be_described_and_has_the_columns_said() -> None:
    for name, shown in columns.LISTS.items():
        statement = parse_one(f"DESCRIBE information_schema.{name.upper()}")
        assert isinstance(statement, Describe)
        assert INFORMATION.columns_of(statement) == shown
    shown_first = describe_list(columns.TAGS).to_pylist()[0]
    assert list(shown_first.values()) == ["table_name", "VARCHAR", 192, ""]
    statement = parse_one("DESCRIBE information_schema.ins_nothing")
    assert isinstance(statement, Describe)
    with pytest.raises(SqlSemanticError) as caught:
        INFORMATION.columns_of(statement)
    assert caught.value.code == "E_NO_TABLE"


def test_databases_of_users_and_of_the_system() -> None:
    assert ask("SHOW DATABASES") == [("Db",), ("information_schema",)]
    assert ask("SHOW USER DATABASES") == [("Db",)]
    assert ask("SHOW SYSTEM DATABASES") == [("information_schema",)]
    assert ask("SHOW USER DATABASES LIKE 'x%'") == []


def test_there_are_no_indexes() -> None:
    assert ask("SELECT index_name, columns FROM information_schema.ins_indexes") == []


def test_queries_without_a_table() -> None:
    assert ask("SELECT SERVER_VERSION()") == [("3.3.6.0 (penstock)",)]
    assert ask("SELECT 1, 'x' AS a, true, NULL") == [(1, "x", True, None)]


@pytest.mark.parametrize("text", ["SELECT * FROM db.m", "SELECT 1 + 1", "SELECT CAST('2' AS INT)"])
def test_queries_that_are_the_stores(text: str) -> None:
    statement = parse_one(text)
    assert isinstance(statement, Query)
    assert INFORMATION.query(statement.query) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT * FROM information_schema.ins_nothing", "E_NO_TABLE"),
        ("SELECT nothing FROM information_schema.ins_stables", "E_SEMANTIC"),
        ("SELECT last_row(*)", "E_SEMANTIC"),
        ("SHOW CREATE STREAM s", "E_NO_STREAM"),
    ],
)
def test_what_there_is_not(text: str, code: str) -> None:
    with pytest.raises(SqlSemanticError) as caught:
        ask(text)
    assert caught.value.code == code


def test_the_database_must_be_known() -> None:
    with pytest.raises(SqlSemanticError, match="which database"):
        ask("SHOW TABLES", None)


def test_redis_down_is_said() -> None:
    with pytest.raises(BusError) as caught:
        ask("SHOW TABLES")
    assert caught.value.code == "E_REDIS_DOWN"


def test_rows_among_the_dead_letters_are_for_who_may_read_the_source() -> None:
    view = MemoryView("CREATE STABLE db.m (ts TIMESTAMP, _v DOUBLE) TAGS (site VARCHAR(8))")
    planned = plan(
        "CREATE STREAM s INTO r AS SELECT _wstart, sum(_v) AS v FROM m PARTITION BY tbname INTERVAL(1s)",
        view,
    ).plan
    stream = StreamEntry(
        200, replace(planned, stream_id=200, source=replace(planned.source, table_id=100))
    )
    grants = [Grant("READ", 200)], [Grant("READ", 200), Grant("READ", 100)], [Grant("READ", 99)]
    users = [
        User(300 + i, name, "", grants=tuple(g))
        for i, (name, g) in enumerate(zip(("of_stream", "of_both", "of_all"), grants, strict=True))
    ]
    catalog = Catalog(
        [
            Database(99, "Db"),
            STABLE,
            stream,
            View(210, "db", "up", "SELECT * FROM m", 100, 9),
            *users,
        ]
    )
    # a name may begin with an underscore, and what is internal does so, too;
    # a line separator of Unicode ends no line here
    line = '{"tbname": "t", "ts": 5, "_v": 1.0, "site": "\u2028", "_now": 7}\n{"cut'.encode()
    letters = [
        DeadLetter("in.db", 0, 3, "stream", "E_LATE", "1 row", 7, 200, line),
        DeadLetter("in.db", 0, 3, "stream", "E_LATE", "1 row", 7, 200, line),
        DeadLetter("in.db", 0, 4, "store", "E_MALFORMED", "not Avro", 7, None, b"secret"),
        DeadLetter("in.db", 0, 5, "view", "E_ROW", "row 0: too long", 7, 210, b"{}"),
    ]
    everyone = Information(
        lambda: catalog, NOWHERE, "1.0", Access(lambda: catalog, "root"), letters=lambda: letters
    )

    def seen(user: str, columns: str, table: str) -> list[tuple[Any, ...]]:
        statement = parse_one(f"SELECT {columns} FROM information_schema.{table}")
        assert isinstance(statement, Query)
        answer = everyone.for_user(user).query(statement.query)
        assert answer is not None
        return [tuple(row.values()) for row in answer.to_pylist()]

    late = "stream_name, table_name, ticks, `row`"
    about = "code, stream_name"
    shown = [("s", "t", 5, '{"ts": 5, "_v": 1.0, "site": "\\u2028"}'), ("s", None, None, '{"cut')]
    for user, rows in {
        "of_stream": [],
        "of_both": shown,
        "of_all": shown,
        "root": shown,
        "nobody": [],
    }.items():
        assert seen(user, late, "ins_late_rows") == rows, user
    assert seen("of_stream", about, "ins_dead_letters") == []
    for user in ("of_all", "root"):
        assert seen(user, about, "ins_dead_letters") == [
            ("E_LATE", "s"),
            ("E_LATE", "s"),
            ("E_MALFORMED", None),
            ("E_ROW", "up"),
        ]
    assert seen("nobody", about, "ins_dead_letters") == []
    statement = parse_one(doctor.NEWEST_DEAD_LETTERS)  # what `penstock doctor` shows
    assert isinstance(statement, Query)
    answer = everyone.for_user("root").query(statement.query)
    assert answer is not None and answer.column("code").to_pylist().count("E_LATE") == 2


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 AS 'x, content FROM read_text(''PLACE'') -- ' FROM information_schema.ins_stables",
        "SELECT 1 AS 'x; COPY (SELECT 1) TO ''PLACE.written'' -- ' FROM information_schema.ins_stables",
        "SELECT `1 AS x, content FROM read_text`('PLACE') FROM information_schema.ins_stables",
        "SELECT read_text('PLACE') FROM information_schema.ins_stables",
        "SELECT stable_name FROM information_schema.ins_stables AS `d, read_text('PLACE') --`",
        "SELECT stable_name AS `n\", content FROM read_text('PLACE') --` FROM information_schema.ins_stables",
        "SELECT 1 FROM information_schema.ins_stables WHERE 'a' IN (SELECT content FROM information_schema.`read_text('PLACE')`)",
        "SELECT stable_name FROM information_schema.ins_stables ORDER BY `1; COPY (SELECT 1) TO 'PLACE.written'; --`",
        "SELECT getenv('HOME') FROM information_schema.ins_stables",
        "SELECT current_setting('home_directory') FROM information_schema.ins_stables",
        "SELECT generate_series(1, 1000000000) FROM information_schema.ins_stables",
    ],
)
def test_no_text_of_a_user_becomes_text_of_the_engine(text: str, tmp_path: Path) -> None:
    place = tmp_path / "root.password"
    place.write_text("nobody reads this")
    statement = parse_one(text.replace("PLACE", str(place)))
    assert isinstance(statement, Query)
    try:
        found = str(INFORMATION.query(statement.query))
    except SqlSemanticError:
        found = ""
    assert "nobody reads this" not in found
    assert not Path(f"{place}.written").exists()


def test_show_like_takes_linear_time() -> None:
    began = time.process_time()
    assert ask("SHOW STABLES LIKE '" + "%" * 5000 + "x'") == []
    assert ask("SHOW STABLES LIKE '" + "%m" * 5000 + "'") == []
    assert time.process_time() - began < 5
    assert (
        ask("SHOW STABLES LIKE '_'")
        == ask("SHOW STABLES LIKE '%M%'")
        == ask("SHOW STABLES LIKE '%%'")
        == [("m",)]
    )
    assert (
        like.matches("a%b_c%", "aXXbbYc.")
        and not like.matches("a%b_c%", "aXXbYYc.")
        and not like.matches("", "a")
        and like.matches("%", "")
    )


def test_code_of_functions_is_for_those_with_admin() -> None:
    function = UserFunction(20, "f", (), ColumnType("INT"), "def f(): return SECRET")
    people = [User(9, "ann", ""), User(10, "adm", "", grants=(Grant("ADMIN"),))]
    catalog = Catalog([Database(99, "Db"), function, *people])
    everyone = Information(lambda: catalog, NOWHERE, "1.0", Access(lambda: catalog, "root"))
    shown = {
        name: str(everyone.for_user(name).show(Show(what="functions"), None))
        for name in ("ann", "adm", "root")
    }
    assert [name for name, text in shown.items() if "SECRET" in text] == ["adm", "root"]
    statement = parse_one("SELECT * FROM information_schema.ins_functions")
    assert isinstance(statement, Query)
    assert "SECRET" not in str(everyone.for_user("ann").query(statement.query))

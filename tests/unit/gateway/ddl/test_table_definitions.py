"""CREATE and ALTER of tables, as the catalog, Kafka and readers of the log see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.ddl.child_tables import ChildTables
from gateway.ddl.growth import grow, lacks
from gateway.ddl.resolution import columns_of, home_of
from gateway.ddl.table_definitions import TableDefinitions, until_read
from penstock import names
from penstock.catalog.changes import Change
from penstock.catalog.model import Child, Table
from penstock.errors import PenstockError
from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sql.plan import Column
from penstock.types import ColumnType
from tests.unit.gateway.kit import MemoryGateway

STABLE = "CREATE STABLE met (ts TIMESTAMP, a INT, s VARCHAR(8)) TAGS (ta INT, tb VARCHAR(8))"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[MemoryGateway]:
    made = MemoryGateway(tmp_path)
    made.define("CREATE DATABASE d PARTITIONS 2")
    yield made
    made.close()


def table(gateway: MemoryGateway, name: str) -> Table:
    found = gateway.catalog.table("d", name)
    assert found is not None
    return found


def child(gateway: MemoryGateway, name: str) -> Child:
    found = gateway.catalog.child("d", name)
    assert found is not None
    return found


def refusal(call: Callable[[], Any]) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        call()
    return wrong.value


def test_parts_of_the_gateway_apply_every_statement_that_they_list(gateway: MemoryGateway) -> None:
    assert st.CreateTable in gateway.parts.definitions.statements
    assert st.Insert not in gateway.parts.definitions.statements
    error = refusal(lambda: gateway.parts.definitions.apply(parse_one("SHOW TABLES"), "d", "UTC"))
    assert error.code == "E_UNSUPPORTED_STATEMENT"


# -------------------------------------------------------------------- tables


def test_a_table_shares_its_databases_topic_unless_it_has_its_own(gateway: MemoryGateway) -> None:
    gateway.define("CREATE TABLE t (ts TIMESTAMP, k INT COMPOSITE KEY, v DOUBLE)")
    made = table(gateway, "t")
    assert (made.kind, made.topic, made.partitions) == ("plain", "in.d", 2)
    assert made.key_column == "k"
    gateway.define(f"{STABLE} COMMENT 'all of it' WITH (topic='own', partitions=3)")
    own = table(gateway, "met")
    assert (own.kind, own.partitions) == ("stable", 3)
    assert own.topic != "in.d" and names.has_own(own.topic)
    assert gateway.log.partitions == {"in.d": 2, own.topic: 3}
    assert own.options["comment"] == "all of it"


def test_a_table_that_is_there(gateway: MemoryGateway) -> None:
    gateway.define("CREATE TABLE t (ts TIMESTAMP, v INT)")
    gateway.define("CREATE TABLE IF NOT EXISTS t (ts TIMESTAMP, w INT)")
    assert [c.name for c in table(gateway, "t").columns] == ["ts", "v"]
    error = refusal(lambda: gateway.define("CREATE TABLE t (ts TIMESTAMP, v INT)"))
    assert error.code == "E_TABLE_EXISTS"
    assert "CREATE TABLE t" in str(error), "it points at the statement"


def test_which_database(gateway: MemoryGateway) -> None:
    create = "CREATE TABLE t (ts TIMESTAMP, v INT)"
    error = refusal(lambda: gateway.define(create, None))
    assert (error.code, error.hint) == ("E_WHICH_DATABASE", "write database.t")
    error = refusal(lambda: gateway.define(create, "dd"))
    assert error.code == "E_NO_DATABASE" and 'did you mean "d"?' in error.hint
    gateway.define("CREATE TABLE d.t (ts TIMESTAMP, v INT)", None)
    assert table(gateway, "t")


def test_names_are_bound_to_the_current_database(gateway: MemoryGateway) -> None:
    statement = parse_one("CREATE TABLE t (ts TIMESTAMP, v INT)")
    assert isinstance(statement, st.CreateTable)
    assert home_of(gateway.catalog, statement, st.Name("t", "D"), None).name == "d"
    columns = columns_of(statement.columns)
    assert [(c.name, str(c.type)) for c in columns] == [("ts", "TIMESTAMP"), ("v", "INT")]


def test_a_topic_of_its_own_is_waited_for(tmp_path: Path) -> None:
    gateway = MemoryGateway(tmp_path, wait_for_jobs=True)
    error = refusal(lambda: gateway.define("CREATE DATABASE d"))
    assert error.code == "E_NOT_LIVE" and "nothing reads topic in.d" in error.message
    gateway.redis.set(names.query_heartbeat("in.d"), "{}")
    change = Change(tuple(gateway.catalog.databases()))
    wait = until_read(gateway.definer, change)
    assert wait is not None
    wait()
    assert until_read(gateway.definer, Change()) is None
    gateway.close()


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE TABLE t (ts TIMESTAMP, v INT FROM d1.a)", "E_VTABLE_ORIGIN"),
        ("CREATE VTABLE t (ts TIMESTAMP, k INT COMPOSITE KEY)", "E_BAD_KEY"),
        ("CREATE VTABLE t (ts TIMESTAMP, v INT) WITH (topic='own')", "E_BAD_OPTION"),
        (
            "CREATE STREAM TABLE t (ts TIMESTAMP, v INT) WITH (raft_group=11, cache_limit=5)",
            "E_HA_OFF",
        ),
        ("ALTER TABLE none ADD COLUMN z INT", "E_NO_TABLE"),
        ("ALTER TABLE none SET TAG a=1", "E_NO_TABLE"),
        ("CREATE TABLE c USING none TAGS (1)", "E_NO_TABLE"),
        ("CREATE TABLE c USING other.met TAGS (1)", "E_OTHER_DATABASE"),
    ],
)
def test_what_cannot_be_made(gateway: MemoryGateway, sql: str, code: str) -> None:
    gateway.define("CREATE DATABASE other")
    assert refusal(lambda: gateway.define(sql)).code == code


# -------------------------------------------------------------------- child tables


def test_a_child_table_is_entered_and_its_partition_hears_of_it(gateway: MemoryGateway) -> None:
    gateway.define(STABLE)
    gateway.define("CREATE TABLE d1 USING met (tb) TAGS ('x') d2 USING met TAGS (1, 'y')")
    assert child(gateway, "d1").tags == (None, "x")
    assert child(gateway, "d2").tags == (1, "y")
    told = gateway.controls("in.d")
    assert sorted(c.tables[0] for _, c in told if c.tables) == ["d1", "d2"]
    assert {c.kind for _, c in told} == {"child"}
    gateway.define("CREATE TABLE IF NOT EXISTS d1 USING met TAGS (7, 'z')")
    assert child(gateway, "d1").tags == (None, "x")


def test_tags_that_json_has_no_form_for_are_exact(gateway: MemoryGateway) -> None:
    gateway.define("CREATE STABLE m (ts TIMESTAMP, v INT) TAGS (p DECIMAL(9,8), k VARBINARY(4))")
    gateway.define("CREATE TABLE d1 USING m TAGS (0.000000019, '\\x00ff')")
    assert child(gateway, "d1").tags == ("0.00000002", "00ff")
    gateway.define("ALTER TABLE d1 SET TAG p = '-1.5'")
    assert child(gateway, "d1").tags == ("-1.50000000", "00ff")
    assert [json.loads(c.body) for _, c in gateway.controls("in.d")] == [
        {"p": "0.00000002", "k": "00ff"},
        {"p": "-1.50000000", "k": "00ff"},
    ]
    key = names.children(table(gateway, "m").id)
    gateway.redis.hset(key, "born", '{"p": "0.25000000", "k": "01"}')
    gateway.define("ALTER TABLE born SET TAG k = 'a'")
    assert child(gateway, "born").tags == ("0.25000000", "61")


def test_a_child_table_that_rows_made_known(gateway: MemoryGateway) -> None:
    gateway.define(STABLE)
    key = names.children(table(gateway, "met").id)
    gateway.redis.hset(key, "born", '{"ta": 3, "tb": "q"}')
    again = "CREATE TABLE {} born USING met TAGS (1, 'y')"
    assert refusal(lambda: gateway.define(again.format(""))).code == "E_TABLE_EXISTS"
    gateway.define(again.format("IF NOT EXISTS"))
    assert gateway.catalog.child("d", "born") is None
    gateway.define("ALTER TABLE born SET TAG tb='r'")
    assert child(gateway, "born").tags == (3, "r"), "the other tag stays what it was"
    ((_, control),) = gateway.controls("in.d")
    assert (control.kind, control.tables) == ("tag", ("born",))


def test_child_tables_are_found_wherever_they_are_known(gateway: MemoryGateway) -> None:
    gateway.define(STABLE)
    gateway.define("CREATE TABLE D1 USING met TAGS (1, 'y'); CREATE TABLE p (ts TIMESTAMP, v INT)")
    tables = ChildTables(gateway.definer, gateway.children)
    met = table(gateway, "met")
    gateway.redis.hset(names.children(met.id), "born", "{}")
    found = tables.find("d", "d1")
    assert found is not None and found[1:] == ("D1", (1, "y"))
    assert tables.stable_of("d", "born") == met.id
    assert tables.stable_of("d", "none") is None
    assert tables.stable_of("nowhere", "born") is None
    assert tables.find_table("d", "d1") == (met, "D1")
    assert tables.find_table("d", "met") == (met, None)
    assert tables.find_table("d", "none") is None
    assert tables.find_table("nowhere", "d1") is None
    with pytest.raises(PenstockError):
        tables.set_tags("d", "none", {"ta": 1})
    found = tables.find("d", "born")
    assert found is not None
    tables.forget_child(found[0], "born")
    assert tables.find("d", "born") is None


def test_reads_that_follow_wait_for_tags_that_were_set(gateway: MemoryGateway) -> None:
    gateway.define(STABLE)
    gateway.define("CREATE TABLE d1 USING met TAGS (1, 'y')")
    made = dict(gateway.own_writes)
    ((partition, _),) = gateway.controls("in.d")
    gateway.define("ALTER TABLE d1 SET TAG tb='r'")
    assert gateway.own_writes == {("in.d", partition): made["in.d", partition] + 1}


def test_tags_that_were_added_later_are_null(gateway: MemoryGateway) -> None:
    gateway.define(STABLE)
    gateway.define("CREATE TABLE d1 USING met TAGS (1, 'y')")
    gateway.define("ALTER STABLE met ADD TAG tc INT")
    gateway.define("ALTER TABLE d1 SET TAG tc=5")
    assert child(gateway, "d1").tags == (1, "y", 5)


# -------------------------------------------------------------------- ALTER TABLE


def test_columns_and_tags_change(gateway: MemoryGateway) -> None:
    gateway.define(STABLE)
    gateway.define(
        "ALTER STABLE met ADD COLUMN z DOUBLE; ALTER STABLE met MODIFY COLUMN s VARCHAR(40);"
        " ALTER STABLE met DROP COLUMN a; ALTER STABLE met RENAME TAG ta tx;"
        " ALTER STABLE met MODIFY TAG tb VARCHAR(9); ALTER STABLE met ADD TAG tn INT"
    )
    made = table(gateway, "met")
    assert [(c.name, str(c.type)) for c in made.columns] == [
        ("ts", "TIMESTAMP"),
        ("s", "VARCHAR(40)"),
        ("z", "DOUBLE"),
    ]
    assert [(c.name, str(c.type)) for c in made.tags] == [
        ("tx", "INT"),
        ("tb", "VARCHAR(9)"),
        ("tn", "INT"),
    ]
    assert len(made.versions) == 7
    gateway.define("ALTER STABLE met DROP TAG tn")
    assert [c.name for c in table(gateway, "met").tags] == ["tx", "tb"]


def test_options_change(gateway: MemoryGateway) -> None:
    gateway.define("CREATE TABLE t (ts TIMESTAMP, v INT)")
    gateway.define("ALTER TABLE t COMMENT 'of mine'")
    assert table(gateway, "t").options["comment"] == "of mine"


# -------------------------------------------------------------------- virtual tables


def test_virtual_tables_take_their_columns_from_others(gateway: MemoryGateway) -> None:
    gateway.define("CREATE TABLE p (ts TIMESTAMP, a INT, b INT)")
    gateway.define("CREATE VTABLE v (ts TIMESTAMP, x INT FROM p.a, y INT FROM d.p.b)")
    made = table(gateway, "v")
    assert made.kind == "virtual"
    assert [(o.column, o.database, o.table, o.source) for o in made.origins] == [
        ("x", "d", "p", "a"),
        ("y", "d", "p", "b"),
    ]
    gateway.define("ALTER VTABLE v ALTER COLUMN x SET p.b")
    gateway.define("ALTER VTABLE v ALTER COLUMN y SET NULL")
    assert [(o.column, o.source) for o in table(gateway, "v").origins] == [("x", "b")]


def test_virtual_child_tables(gateway: MemoryGateway) -> None:
    gateway.define("CREATE TABLE p (ts TIMESTAMP, a INT)")
    gateway.define("CREATE VIRTUAL STABLE vst (ts TIMESTAMP, x INT) TAGS (ta INT)")
    gateway.define("CREATE VTABLE c (x FROM p.a) USING vst (ta) TAGS (4)")
    made = child(gateway, "c")
    assert made.tags == (4,) and made.origins[0].source == "a"
    gateway.define("ALTER VTABLE c SET TAG ta=5")
    assert child(gateway, "c").tags == (5,)
    error = refusal(lambda: gateway.define("CREATE TABLE e USING vst TAGS (1)"))
    assert (error.code, error.hint) == ("E_NOT_A_STABLE", "CREATE VTABLE")


# -------------------------------------------------------------------- tables that rows make


def test_a_supertable_grows_with_its_rows(gateway: MemoryGateway) -> None:
    time = Column("ts", ColumnType("TIMESTAMP"))
    value = Column("v", ColumnType("DOUBLE"))
    text = Column("s", ColumnType("VARCHAR", 8))
    tag = Column("host", ColumnType("VARCHAR", 4))

    def check(columns: list[Column], tags: list[Column]) -> bool:
        return lacks(gateway.catalog, "d", "m", columns, tags)

    assert check([value], [tag])
    grow(gateway.definer, "d", "m", time, [value], [tag])
    assert not check([value], [tag])
    assert check([value, text], [tag])
    longer = Column("HOST", ColumnType("VARCHAR", 16))
    assert check([value], [longer])
    grow(gateway.definer, "d", "m", time, [value, text], [longer])
    assert not check([value, text], [longer])
    made = table(gateway, "m")
    assert [c.name for c in made.columns] == ["ts", "v", "s"]
    assert [(c.name, str(c.type)) for c in made.tags] == [("host", "VARCHAR(16)")]
    assert not check([Column("v", ColumnType("INT"))], [Column("host", ColumnType("VARCHAR", 2))])
    before = len(gateway.writer.changes)
    grow(gateway.definer, "d", "m", time, [value, text], [longer])
    assert len(gateway.writer.changes) == before, "there is nothing to add"


def test_definitions_of_tables_alone(gateway: MemoryGateway) -> None:
    subject = TableDefinitions(
        gateway.definer,
        ChildTables(gateway.definer, gateway.children),
        gateway.parts.stream_tables,
        gateway.clock,
    )
    statement = parse_one("CREATE TABLE t (ts TIMESTAMP, v INT)")
    assert isinstance(statement, st.CreateTable)
    assert subject.create(statement, "d", ()) is None
    assert table(gateway, "t").kind == "plain"

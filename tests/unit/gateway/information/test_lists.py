"""Lists of SHOW and `information_schema`, out of the catalog and of what Redis says."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import pyarrow as pa
import pytest

from gateway.information import columns
from gateway.information.children import ChildLists
from gateway.information.federation import FederationLists
from gateway.information.losses import LossLists
from gateway.information.mesh import MeshLists
from gateway.information.principals import PrincipalLists
from gateway.information.scope import SCHEMA, ListScope
from gateway.information.storage import StorageLists
from gateway.information.streams import StreamLists
from gateway.information.tables import KINDS, TableLists
from gateway.information.viewer import Viewer
from gateway.stream_status import live_fields, progress
from penstock import foreign, names
from penstock.auth.access import Access
from penstock.catalog.model import (
    FOREIGN,
    Child,
    Database,
    External,
    Grant,
    Move,
    Role,
    Snode,
    StreamEntry,
    Table,
    TableVersion,
    User,
    View,
)
from penstock.catalog.view import Catalog
from penstock.errors import BusError
from penstock.records import DeadLetter
from penstock.sql.plan import Column, Duration
from penstock.types import ColumnType
from penstock.udf import UserFunction
from tests.unit.services.memory_redis import MemoryRedis
from tests.unit.sql.memory_view import MemoryView, plan

COLUMNS = (Column("ts", ColumnType("TIMESTAMP")), Column("v", ColumnType("DOUBLE")))
DATABASE = Database(1, "d", partitions=2, keep=Duration(10, "d"))
STABLE = Table(
    7,
    "d",
    "m",
    "stable",
    "in.d",
    2,
    "ms",
    (TableVersion(107, COLUMNS, (Column("site", ColumnType("VARCHAR", 8)),)),),
    options={"comment": "of mine"},
)
PLAIN = Table(8, "d", "p", "plain", "in.d", 2, "ms", (TableVersion(108, COLUMNS),))
VIRTUAL = dataclasses.replace(PLAIN, id=9, name="v", kind="virtual")
CHILD = Child(10, "d", 7, "c1", ("x",))
FAR = External(40, "d", "far", "penstock", (("h1:1", "h2:1"), ("h3:1",)), "rd", "rt", COLUMNS)
VIEW = View(42, "d", "up", "SELECT * FROM d.m", 7, 8, created=5, on_error="drop")


def stream(text: str = "", **more: Any) -> StreamEntry:
    view = MemoryView("CREATE STABLE db.m (ts TIMESTAMP, v DOUBLE) TAGS (site VARCHAR(8))")
    planned = plan(
        f"CREATE STREAM s {text} INTO r AS SELECT _wstart, sum(v) AS v FROM m PARTITION BY tbname"
        " INTERVAL(1s)",
        view,
    ).plan
    source = dataclasses.replace(planned.source, table_id=7, database="d")
    made = dataclasses.replace(planned, stream_id=12, database="d", source=source)
    return StreamEntry(12, made, created=5, **more)


class Here:
    def __init__(self, *entries: Any, user: str = "root") -> None:
        self.catalog = Catalog([DATABASE, STABLE, PLAIN, VIRTUAL, CHILD, *entries])
        self.redis = MemoryRedis()
        client: Any = self.redis
        access = Access(lambda: self.catalog, "root")
        self.viewer = Viewer(lambda: self.catalog, client, access, user)

    def as_user(self, user: str) -> Viewer:
        return dataclasses.replace(self.viewer, user=user)


def storage(here: Here) -> StorageLists:
    return StorageLists(here.viewer, TableLists(here.viewer).count_children)


def rows(table: pa.Table, *names_: str) -> list[tuple[Any, ...]]:
    chosen = table.select(list(names_)) if names_ else table
    return [tuple(row.values()) for row in chosen.to_pylist()]


def test_every_list_has_the_columns_that_it_says() -> None:
    here = Here(stream(), FAR, VIEW)
    for made, wanted in (
        (TableLists(here.viewer).databases(), columns.DATABASES),
        (TableLists(here.viewer).stables(), columns.STABLES),
        (TableLists(here.viewer).tables(), columns.TABLES),
        (TableLists(here.viewer).columns(), columns.COLUMNS),
        (storage(here).storage(), columns.STORAGE),
        (ChildLists(here.viewer).tags(), columns.TAGS),
        (StreamLists(here.viewer).streams(), columns.STREAMS),
        (StreamLists(here.viewer).tasks(), columns.TASKS),
        (FederationLists(here.viewer).externals(), columns.EXTERNALS),
        (FederationLists(here.viewer).views(), columns.VIEWS),
        (PrincipalLists(here.viewer).users(), columns.USERS),
        (PrincipalLists(here.viewer).roles(), columns.ROLES),
        (PrincipalLists(here.viewer).grants(), columns.GRANTS),
        (MeshLists(here.viewer).dnodes(), columns.DNODES),
        (MeshLists(here.viewer).snodes(), columns.SNODES),
        (MeshLists(here.viewer).functions(), columns.FUNCTIONS),
        (LossLists(here.viewer, list).late(), columns.LATE),
        (LossLists(here.viewer, list).dead_letters(), columns.LETTERS),
    ):
        assert made.schema.names == [name for name, _ in wanted]


# -------------------------------------------------------------------- tables


def test_databases_count_tables_that_were_made_and_tables_that_rows_made() -> None:
    here = Here()
    here.redis.hset(names.children(7), mapping={"c1": "{}", "born": "{}"})
    found = rows(TableLists(here.viewer).databases(), "name", "ntables", "keep", "status")
    assert found == [("d", 4, "10d", "ready"), (SCHEMA, len(columns.LISTS), None, "ready")]
    moving = dataclasses.replace(DATABASE, keep=None, move=Move(4))
    here.catalog.put(moving)
    found = rows(TableLists(here.viewer).databases(), "keep", "status")
    assert found[0] == ("forever", "moving to 4 partitions")


def test_tables_by_kind() -> None:
    here = Here()
    here.redis.hset(names.children(7), "born", "{}")
    lists = TableLists(here.viewer)
    found = sorted(rows(lists.tables(ListScope("d")), "table_name", "type", "stable_name"))
    assert found == [
        ("born", "CHILD_TABLE", "m"),
        ("c1", "CHILD_TABLE", "m"),
        ("p", "NORMAL_TABLE", None),
        ("v", "VIRTUAL_NORMAL_TABLE", None),
    ]
    plain = rows(lists.tables(ListScope("d", kind="NORMAL_TABLE")), "table_name")
    assert sorted(plain) == [("p",), ("v",)]
    children = rows(lists.tables(ListScope("d", kind="CHILD_TABLE")), "table_name")
    assert {("born",), ("c1",)} <= set(children)
    assert rows(lists.table_names("d", KINDS["VTABLES"])) == [("v",)]
    assert sorted(rows(lists.table_names("d", KINDS["TABLES"]))) == [("born",), ("c1",), ("p",)]
    assert sorted(rows(lists.table_names("d", KINDS["CHILD TABLES"]))) == [("born",), ("c1",)]
    assert rows(lists.table_names("d", KINDS["NORMAL TABLES"])) == [("p",)]
    assert rows(lists.stables(), "stable_name", "tags", "table_comment") == [("m", 1, "of mine")]
    assert rows(lists.tables(ListScope("none"))) == []


def test_columns_and_tags() -> None:
    lists = TableLists(Here().viewer)
    noted = rows(lists.columns(), "table_name", "table_type", "col_name", "note")
    assert ("m", "SUPER_TABLE", "site", "TAG") in noted
    assert ("v", "VIRTUAL_NORMAL_TABLE", "v", "") in noted


def test_child_tables_have_the_columns_of_their_supertable() -> None:
    here = Here()
    here.redis.hset(names.children(7), mapping={"c1": "{}", "born": "{}"})
    found = rows(TableLists(here.viewer).columns(), "table_name", "table_type", "col_name")
    assert sorted(row for row in found if row[1] == "CHILD_TABLE") == [
        ("born", "CHILD_TABLE", "ts"),
        ("born", "CHILD_TABLE", "v"),
        ("c1", "CHILD_TABLE", "ts"),
        ("c1", "CHILD_TABLE", "v"),
    ]
    scope = ListScope("d", tables=frozenset({"born"}))
    one = rows(TableLists(here.viewer).columns(scope), "table_name", "table_type")
    assert [row for row in one if row[1] == "CHILD_TABLE"] == [("born", "CHILD_TABLE")] * 2
    assert TableLists(here.viewer).columns(ListScope("none")).num_rows == 0


def test_types_and_sizes_of_columns_are_as_drivers_read_them() -> None:
    kinds = (
        ColumnType("TIMESTAMP"),
        ColumnType("VARCHAR", 24),
        ColumnType("NCHAR", 20),
        ColumnType("VARBINARY", 8),
        ColumnType("DECIMAL", precision=20, scale=4),
    )
    typed = tuple(Column(f"c{at}", kind) for at, kind in enumerate(kinds))
    here = Here()
    here.catalog.put(dataclasses.replace(PLAIN, versions=(TableVersion(108, typed),)))
    found = rows(
        TableLists(here.viewer).columns(), "table_name", "col_name", "col_type", "col_length"
    )
    assert [row[2:] for row in found if row[0] == "p"] == [
        ("TIMESTAMP", 8),
        ("VARCHAR(24)", 26),
        ("NCHAR(20)", 82),
        ("VARBINARY", 10),
        ("DECIMAL(20,4)", 16),
    ]


def test_what_is_kept_of_tables_is_what_the_store_tells() -> None:
    here = Here()
    here.catalog.put(dataclasses.replace(PLAIN, keep=Duration(5, "d")))
    here.redis.hset(names.children(7), mapping={"c1": "{}", "born": "{}"})
    said = {"rows": 30, "bytes": 4_000, "files": 2, "tail_rows": 3}
    here.redis.hset(names.table_sizes(), "7", json.dumps(said))
    found = rows(storage(here).storage())
    assert sorted(found) == [
        ("m", "d", "SUPER_TABLE", 2, None, "of mine", 2, 30, 3, 4_000, 2),
        ("p", "d", "NORMAL_TABLE", 2, "5d", None, None, None, None, None, None),
        ("v", "d", "VIRTUAL_NORMAL_TABLE", None, None, None, None, None, None, None, None),
    ]
    one = storage(here).storage(ListScope("d", tables=frozenset({"p"})))
    assert rows(one, "table_name") == [("p",)]
    assert storage(here).storage(ListScope("none")).num_rows == 0


def test_who_sees_what() -> None:
    ann = User(900, "ann", "", grants=(Grant("READ", 8),))
    here = Here(ann)
    lists = TableLists(here.as_user("ann"))
    assert rows(lists.tables(ListScope("d")), "table_name") == [("p",)]
    assert lists.stables().num_rows == 0
    here.redis.hset(names.table_sizes(), "8", '{"rows": 5}')
    kept = StorageLists(here.as_user("ann"), lists.count_children)
    assert rows(kept.storage(), "table_name", "stored_rows") == [("p", 5)]
    here.catalog.put(dataclasses.replace(ann, grants=(Grant("WRITE", 8),)))
    assert rows(kept.storage(), "table_name", "stored_rows") == [("p", None)]
    here.catalog.put(ann)
    assert here.as_user("ann").may("READ", PLAIN) and not here.as_user("ann").may("WRITE", PLAIN)
    assert here.as_user("ann").manages("ann") and not here.as_user("ann").manages("bob")
    assert here.viewer.manages("bob")


def test_redis_that_is_away_is_said() -> None:
    here = Here()
    here.redis.down = True
    with pytest.raises(BusError):
        TableLists(here.viewer).tables()


# -------------------------------------------------------------------- streams


def status(here: Here) -> tuple[Any, ...]:
    ((state, message),) = rows(StreamLists(here.viewer).streams("d"), "status", "message")
    return state, message


def test_a_stream_is_ready_when_it_is_live_in_every_partition() -> None:
    one = stream()
    here = Here(one)
    assert live_fields(here.catalog, one) == {"in.d:0", "in.d:1"}
    assert status(here) == ("init", "live in 0 of 2 partitions")
    key = names.stream_status(12)
    here.redis.hset(key, "in.d:0", "17")
    assert status(here) == ("init", "live in 1 of 2 partitions")
    here.redis.hset(key, mapping={f"{names.FILLING}in.d:{p}": v for p, v in ((0, 60), (1, 40))})
    assert status(here) == ("init", "history 40 %")
    assert rows(StreamLists(here.viewer).streams(), "history_percent") == [(40,)]
    here.redis.hdel(key, f"{names.FILLING}in.d:0")
    here.redis.hdel(key, f"{names.FILLING}in.d:1")
    here.redis.hset(key, "in.d:1", "18")
    assert status(here) == ("ready", "")
    assert rows(StreamLists(here.viewer).streams(), "history_percent") == [(None,)]
    client: Any = here.redis
    assert progress(client, one) == {"in.d:0": "17", "in.d:1": "18"}


def test_what_stops_a_stream() -> None:
    key = names.stream_status(12)
    here = Here(stream())
    here.redis.set(names.safe_mode(), "1")
    assert status(here)[0] == "stopped"
    here.redis.hset(key, names.QUOTA, "too many rows")
    assert status(here) == ("throttled", "too many rows")
    here.redis.hset(key, names.HELD, "a target is behind")
    assert status(here) == ("paused", "a target is behind")
    here.catalog.put(stream(status="failed", reason="no such column"))
    assert status(here) == ("failed", "no such column")
    here.redis.hset(key, f"{names.FAILED}in.d:1", "it broke")
    assert status(here) == ("failed", "in.d:1: it broke")


def test_a_stream_without_a_result_table_has_no_target() -> None:
    one = stream()
    target = dataclasses.replace(one.plan.target, stored=False)
    told = dataclasses.replace(one, plan=dataclasses.replace(one.plan, target=target))
    for entry, wanted in ((one, ("db", "r")), (told, (None, None))):
        listed = StreamLists(Here(entry).viewer).streams()
        assert rows(listed, "target_db", "target_table") == [wanted]


def test_what_a_stream_has_counted() -> None:
    here = Here(stream())
    key = names.stream_status(12)
    for partition, error in (("0", ""), ("1", "a row was bad")):
        said = {"rows_in": 5, "rows_out": 2, "late": 1, "failed": 0, "state_bytes": 10}
        said |= {"full_bytes": 8}
        here.redis.hset(key, f"{names.STATS}in.d:{partition}", json.dumps(said | {"error": error}))
    here.redis.set(names.query_heartbeat("in.d"), json.dumps({"lag": 7, "hindmost": 1}))
    ((counted),) = rows(
        StreamLists(here.viewer).streams(),
        "rows_in",
        "rows_out",
        "late_rows",
        "state_bytes",
        "lag_records",
        "last_error",
        "events_waiting",
        "lag_partition",
        "full_state_bytes",
    )
    assert counted == (10, 4, 2, 20, 7, "a row was bad", None, "in.d:1", 16)


def test_targets_that_are_down_are_said_while_that_is_news() -> None:
    notify = "NOTIFY ('ws://h:1/a') ON ('WINDOW_CLOSE')"
    view = MemoryView("CREATE STABLE db.m (ts TIMESTAMP, v DOUBLE) TAGS (site VARCHAR(8))")
    planned = plan(
        "CREATE STREAM s INTO r AS SELECT _wstart, sum(v) AS v FROM m PARTITION BY tbname"
        f" INTERVAL(1s) {notify}",
        view,
    ).plan
    source = dataclasses.replace(planned.source, table_id=7, database="d")
    here = Here(
        StreamEntry(12, dataclasses.replace(planned, stream_id=12, database="d", source=source))
    )
    key = names.stream_status(12)
    here.redis.hset(key, mapping={"in.d:0": "1", "in.d:1": "1"})
    said = {"down": ["target h is down"], "waiting": 3, "at": time.time()}
    here.redis.hset(key, names.targets_field("n1"), json.dumps(said))
    assert status(here) == ("ready", "target h is down; 3 events wait")
    assert rows(StreamLists(here.viewer).streams(), "events_waiting") == [(3,)]
    here.redis.hset(key, names.targets_field("n1"), json.dumps(said | {"at": 5.0}))
    assert status(here) == ("ready", "")


def test_each_task_of_a_stream() -> None:
    here = Here(stream())
    key = names.stream_status(12)
    here.redis.hset(key, "in.d:0", "17")
    here.redis.hset(key, f"{names.FILLING}in.d:1", "40")
    stats = {"rows_in": 5, "rows_out": 2, "late": 1, "failed": 0, "state_bytes": 9, "error": ""}
    here.redis.hset(key, f"{names.STATS}in.d:0", json.dumps(stats))
    shown = ("task_id", "status", "live_from", "progress", "rows_in", "history_percent")
    assert sorted(rows(StreamLists(here.viewer).tasks(), *shown)) == [
        ("in.d:0", "ready", 17, None, 5, None),
        ("in.d:1", "init", None, "history 40 %", 0, 40),
    ]


# -------------------------------------------------------------------- federation


def test_external_streams_and_topics_of_other_kafkas() -> None:
    option = foreign.Topic("k:9092", "t", "json", protocol="SSL", user="u").option()
    topic = dataclasses.replace(PLAIN, id=60, name="inflow", options={FOREIGN: option})
    here = Here(FAR, topic)
    lists = FederationLists(here.viewer)
    wanted = ("stream_name", "type", "hosts", "secure", "status", "rows_read", "lag_records")
    assert rows(lists.externals(), *wanted) == [
        ("far", "penstock", "h1:1|h2:1,h3:1", False, None, None, None),
        ("inflow", "kafka", "k:9092", True, "starting", 0, None),
    ]
    said = {"state": "running", "rows": "5", "lag": "2", "error": ""}
    here.redis.hset(names.view_status(60), mapping=said)
    assert rows(lists.externals("d"), *wanted)[1][4:] == ("running", 5, 2)


def test_views_and_how_far_they_are() -> None:
    here = Here(VIEW)
    lists = FederationLists(here.viewer)
    wanted = ("status", "source", "target", "rows_sent", "lag_seconds", "on_error", "rows_dropped")
    assert rows(lists.views(), *wanted) == [("starting", "`d`.`m`", "`d`.`p`", 0, None, "DROP", 0)]
    said = {"state": "running", "rows": "5", "behind": "1.5", "dropped": "2"}
    here.redis.hset(names.view_status(42), mapping=said)
    assert rows(lists.views("d"), *wanted) == [("running", "`d`.`m`", "`d`.`p`", 5, 1.5, "DROP", 2)]
    here.catalog.put(dataclasses.replace(VIEW, status="paused"))
    assert rows(lists.views(), "status") == [("paused",)]


# -------------------------------------------------------------------- users and rights


def test_everybody_is_for_administrators_and_oneself_for_oneself() -> None:
    role = Role(800, "readers", (Grant("READ", 1),))
    ann = User(900, "ann", "x", roles=(800,), grants=(Grant("READ", 8), Grant("WRITE", 999)))
    bob = User(901, "bob", "x", enabled=False)
    here = Here(role, ann, bob)
    lists = PrincipalLists(here.viewer)
    assert rows(lists.users(), "name", "super", "enable", "roles") == [
        ("root", 1, 1, ""),
        ("ann", 0, 1, "readers"),
        ("bob", 0, 0, ""),
    ]
    assert rows(lists.roles()) == [("readers", "ann")]
    assert rows(lists.grants()) == [
        ("root", "user", "ALL", "all", "*", "*"),
        ("ann", "user", "READ", "table", "d", "p"),
        ("readers", "role", "READ", "database", "d", "*"),
    ]
    mine = PrincipalLists(here.as_user("ann"))
    assert rows(mine.users(), "name") == [("ann",)]
    assert rows(mine.grants(), "user_name") == [("ann",), ("readers",)]
    others = PrincipalLists(here.as_user("bob"))
    assert rows(others.users(), "name") == [("bob",)]
    assert rows(others.roles()) == rows(others.grants()) == []


# -------------------------------------------------------------------- the mesh


def beat(here: Here, node: int, service: str, ago: float = 0.0) -> None:
    about = {"host": f"h{node}", "started": 5.0, "seen": time.time() - ago}
    here.redis.hset(names.nodes(), f"{node}:{service}", json.dumps(about))


def test_nodes_and_snodes() -> None:
    here = Here(Snode(90, 1, 7), Snode(91, 2, 8), Snode(92, 3, 9))
    beat(here, 1, "snode")
    lists = MeshLists(here.viewer)
    assert rows(lists.alive(), "status") == [(1,)]
    beat(here, 2, "store", ago=60)
    beat(here, 3, "snode")
    assert rows(lists.alive(), "status") == [(2,)]
    found = rows(lists.dnodes(), "id", "status", "services", "note")
    assert found[0] == (1, "ready", "snode", None)
    assert found[1][:2] == (2, "offline") and str(found[1][3]).startswith("last heard of 60")
    report = {"endpoint": "h:1", "target": "/b", "note": "", "backups": 4, "newest": 6}
    here.redis.set(names.snode_report(1), json.dumps(report))
    here.redis.set(names.snode_report(3), json.dumps(report | {"note": "the disk is full"}))
    found = rows(lists.snodes(), "id", "status", "backups", "note")
    assert found == [
        (1, "ready", 4, None),
        (2, "offline", 0, "its service does not run"),
        (3, "failing", 4, "the disk is full"),
    ]


def test_functions_show_their_code_to_administrators() -> None:
    function = UserFunction(20, "f", (ColumnType("INT"),), ColumnType("INT"), "def f(a): return a")
    here = Here(function, User(900, "ann", ""))
    shown = ("name", "parameters", "output_type", "streams", "func_body")
    assert rows(MeshLists(here.viewer).functions(), *shown) == [
        ("f", "INT", "INT", 0, "def f(a): return a")
    ]
    assert rows(MeshLists(here.as_user("ann")).functions(), "func_body") == [(None,)]


# -------------------------------------------------------------------- losses


def test_late_rows_and_dead_letters() -> None:
    line = b'{"tbname": "t", "ts": 5, "v": 1.0, "_now": 7}'
    letters = [
        DeadLetter("in.d", 0, 3, "stream", "E_LATE", "1 row", 7, 12, line),
        DeadLetter("in.d", 0, 3, "stream", "E_LATE", "1 row", 7, 12, line),
        DeadLetter("in.d", 0, 4, "stream", "E_LATE", "1 row", 7, 99, line),
        DeadLetter("in.d", 0, 5, "store", "E_MALFORMED", "junk", 7, None, b"\xff"),
    ]
    here = Here(stream(), User(900, "ann", "", grants=(Grant("READ", 12),)))
    lists = LossLists(here.viewer, lambda: letters)
    assert rows(lists.late(), "stream_name", "table_name", "ticks", "row") == [
        ("s", "t", 5, '{"ts": 5, "v": 1.0}')
    ]
    shown = rows(lists.dead_letters(), "offset", "stream_name", "code")
    assert shown == [
        (3, "s", "E_LATE"),
        (3, "s", "E_LATE"),
        (4, None, "E_LATE"),
        (5, None, "E_MALFORMED"),
    ]
    about = ("kind", "source_db", "source_table", "time_column")
    assert rows(lists.dead_letters(), *about)[::3] == [
        ("row", "d", "m", "ts"),
        ("record", "d", None, None),
    ]
    of_stream = LossLists(here.as_user("ann"), lambda: letters)
    assert of_stream.late().num_rows == of_stream.dead_letters().num_rows == 0

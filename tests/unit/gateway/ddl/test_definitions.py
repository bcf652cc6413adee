"""DDL statements from text to the catalog: streams, views, users, functions, and all kinds of DROP."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gateway.ddl import stream_sink
from gateway.ddl.definitions import Definitions
from gateway.ddl.removal import Removal
from gateway.federation.mirrors import Mirrors
from gateway.federation.view_start import ViewStart
from gateway.federation.views import MaterializedViews
from gateway.intake import database_of, layout_of
from penstock import names
from penstock.catalog import stream_tables
from penstock.catalog.model import External, Replicated, Table, User
from penstock.errors import PenstockError
from penstock.feeds.cursor import Cursor
from penstock.link import external
from penstock.records import ControlRecord
from penstock.sql import parse_one
from penstock.sql import statements as st
from penstock.sql.plan import Column, StreamPlan
from penstock.types import ColumnType
from tests.unit.gateway.kit import NOW, ROOT, MemoryGateway

STABLE = "CREATE STABLE met (ts TIMESTAMP, a INT) TAGS (ta INT)"
PLAIN = "CREATE TABLE p (ts TIMESTAMP, a INT)"
STREAM = (
    "CREATE STREAM s INTO r AS SELECT _wstart, sum(a) AS total FROM met PARTITION BY tbname"
    " INTERVAL(10s)"
)
FAR = External(
    0,
    "d",
    "far",
    "penstock",
    (("h1:1",), ("h2:1",)),
    "rd",
    "rt",
    (Column("ts", ColumnType("TIMESTAMP")), Column("a", ColumnType("INT"))),
)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[MemoryGateway]:
    made = MemoryGateway(tmp_path)
    made.define(f"CREATE DATABASE d PARTITIONS 2; {STABLE}; {PLAIN}")
    yield made
    made.close()


def refusal(call: Callable[[], Any]) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        call()
    return wrong.value


def add_far(gateway: MemoryGateway) -> External:
    made = dataclasses.replace(FAR, id=gateway.writer.new_id())
    gateway.catalog.put(made)
    return made


def table(gateway: MemoryGateway, name: str) -> Table:
    found = gateway.catalog.table("d", name)
    assert found is not None
    return found


def test_the_parts_are_what_they_are_called(gateway: MemoryGateway) -> None:
    parts = gateway.parts
    assert isinstance(parts.definitions, Definitions) and isinstance(parts.removal, Removal)
    for kind in (st.Drop, st.CreateUser, st.Grant, st.CreateView, st.CreateStream):
        assert kind in parts.definitions.statements


# -------------------------------------------------------------------- streams


def test_readers_of_the_log_see_no_address_of_notify(gateway: MemoryGateway) -> None:
    secrets = (b"hooks.example.com", b"pa55word", b"t0ken", b"keyname")
    notify = (
        "NOTIFY ('https://me:pa55word@hooks.example.com/in?t=t0ken') ON ('WINDOW_OPEN')"
        " SIGNED_BY 'keyname' NOTIFY_HISTORY 1"
    )
    gateway.define(f"{STREAM} {notify}")
    gateway.define("ALTER STREAM s MAX_STATE 500")
    told = gateway.controls("in.d")
    assert sorted(c.kind for _, c in told) == ["alter", "alter", "stream_on", "stream_on"]
    for _, control in told:
        notified = StreamPlan.from_json(control.body).notify
        assert notified is not None and notified.on == ("WINDOW_OPEN",) and notified.history
    logged = [v for place in gateway.log.records for v in gateway.log.values(*place)]
    assert len(logged) >= 4
    assert not [v for v in logged for secret in secrets if secret in v]
    stream = gateway.catalog.stream("d", "s")
    assert stream is not None and stream.plan.notify is not None
    assert stream.plan.notify.signed_by == "keyname", "the notifier reads the catalog"


def test_a_stream_has_its_result_table_and_its_source_hears_of_it(gateway: MemoryGateway) -> None:
    gateway.define(STREAM)
    stream = gateway.catalog.stream("d", "s")
    assert stream is not None and stream.created == NOW // 10**6
    result = table(gateway, "r")
    assert result.result_of == stream.id
    assert stream.plan.target.table_id == result.id
    assert gateway.kinds("in.d") == [(0, "stream_on"), (1, "stream_on")]
    gateway.define(STREAM.replace("STREAM s", "STREAM IF NOT EXISTS s"))
    assert len(gateway.controls("in.d")) == 2


def test_streams_are_paused_resumed_flushed_and_dropped(gateway: MemoryGateway) -> None:
    gateway.define(STREAM)
    before = len(gateway.controls("in.d"))
    gateway.define("PAUSE STREAM s")
    stream = gateway.catalog.stream("d", "s")
    assert stream is not None and stream.status == "paused"
    gateway.define("RESUME STREAM s; FLUSH STREAM s; DROP STREAM s")
    kinds = [c.kind for p, c in gateway.controls("in.d") if p == 0][before // 2 :]
    assert kinds == ["pause", "resume", "flush", "stream_off"]
    assert gateway.catalog.stream("d", "s") is None
    assert table(gateway, "r"), "its result stays"
    gateway.define("PAUSE STREAM IF EXISTS s; DROP STREAM IF EXISTS s")
    assert refusal(lambda: gateway.define("PAUSE STREAM s")).code == "E_NO_STREAM"


def explained_lines(gateway: MemoryGateway, text: str) -> list[tuple[str, str]]:
    statement = parse_one(text)
    assert isinstance(statement, st.CreateStream)
    shown = gateway.parts.streams.explain(statement, "d", "UTC", ROOT).to_pydict()
    return list(zip(shown["item"], shown["value"], strict=True))


def explained(gateway: MemoryGateway, text: str) -> dict[str, str]:
    return dict(explained_lines(gateway, text))


def test_explain_shows_what_would_be_made_and_what_surprises(gateway: MemoryGateway) -> None:
    lines = explained_lines(gateway, STREAM)
    items = dict(lines)
    assert items["stream"] == "d.s" and items["source"] == "d.met (stable)"
    assert items["path"].startswith("scan") and items["target"] == "d.r (new)"
    assert items["aggregates"] == "sum(a)" and "replaces" not in items
    assert any("WINDOW_CLOSE" in value for item, value in lines if item == "notice")
    assert gateway.catalog.stream("d", "s") is None, "nothing is made"


def test_explain_plans_over_the_mirror_of_another_deployments_rows(gateway: MemoryGateway) -> None:
    gateway.catalog.put(dataclasses.replace(FAR, id=900))
    text = (
        "CREATE STREAM s FILL_HISTORY 1 INTO r AS"
        " SELECT _wstart, sum(a) AS total FROM far WHERE far.a > 1 INTERVAL(10s)"
    )
    before = explained(gateway, text)
    assert before["source"] == "d._history_far (plain), a mirror of external stream d.far"
    assert before["columns"] == "_wstart TIMESTAMP, total BIGINT" and before["where"] == "a > 1"
    assert gateway.catalog.table("d", "_history_far") is None and not gateway.catalog.views()
    gateway.define(text)
    stream = gateway.catalog.stream("d", "s")
    assert stream is not None and stream.plan.where == before["where"]
    assert stream.plan.source.table_id == table(gateway, "_history_far").id
    another = explained(gateway, text.replace("STREAM s", "STREAM t").replace("r AS", "r2 AS"))
    assert another["source"] == before["source"]
    wrong = refusal(lambda: explained(gateway, text.replace("sum(a)", "sum(b)")))
    assert wrong.code == "E_UNKNOWN_COLUMN"


def test_explain_refuses_a_mirror_that_cannot_be_made(gateway: MemoryGateway) -> None:
    gateway.catalog.put(dataclasses.replace(FAR, id=900, precision="ns"))
    text = "CREATE STREAM s INTO r AS SELECT _wstart, sum(a) AS total FROM far INTERVAL(10s)"
    wrong = refusal(lambda: explained(gateway, text))
    assert wrong.code == "E_BAD_OPTION" and "precision" in str(wrong)


TOLD = "CREATE STREAM s AS SELECT sum(a) AS total FROM met INTERVAL(10s) NOTIFY ON ('WINDOW_CLOSE')"


def tables(gateway: MemoryGateway) -> list[str]:
    return [t.name for t in gateway.catalog.tables("d")]


def test_a_stream_without_into_makes_no_table(gateway: MemoryGateway) -> None:
    gateway.define(TOLD)
    stream = gateway.catalog.stream("d", "s")
    assert stream is not None and not stream.plan.target.stored
    assert tables(gateway) == ["met", "p"]
    assert gateway.kinds("in.d") == [(0, "stream_on"), (1, "stream_on")]
    gateway.define(TOLD.replace("STREAM s", "STREAM IF NOT EXISTS s"))
    gateway.define("PAUSE STREAM s; RESUME STREAM s; FLUSH STREAM s; ALTER STREAM s MAX_STATE 5")
    gateway.define("RECALCULATE STREAM s FROM 0")
    kinds = [c.kind for p, c in gateway.controls("in.d") if p == 0]
    assert kinds == ["stream_on", "pause", "resume", "flush", "alter", "recalculate"]
    altered = gateway.catalog.stream("d", "s")
    assert altered is not None and altered.plan.sql == (
        "CREATE STREAM s MAX_STATE 5 AS SELECT sum(a) AS total FROM met INTERVAL(10s)"
        " NOTIFY ON ('WINDOW_CLOSE')"
    )
    gateway.define("DROP STREAM s")
    assert gateway.catalog.stream("d", "s") is None and tables(gateway) == ["met", "p"]


def test_a_stream_that_failed_is_neither_changed_nor_recalculated(gateway: MemoryGateway) -> None:
    gateway.define(STREAM)
    stream = gateway.catalog.stream("d", "s")
    assert stream is not None
    gateway.redis.hset(names.stream_status(stream.id), f"{names.FAILED}in.d:0", "too much")
    for statement in ("ALTER STREAM s ON_ERROR DROP", "RECALCULATE STREAM s FROM 1 TO 2"):
        refused = refusal(partial(gateway.define, statement))
        assert refused.code == "E_STREAM_STATE" and "FILL_HISTORY 1" in refused.hint
    gateway.redis.hdel(names.stream_status(stream.id), f"{names.FAILED}in.d:0")
    gateway.define("RECALCULATE STREAM s FROM 1 TO 2")


def test_a_stream_gets_a_result_table_and_loses_it(gateway: MemoryGateway) -> None:
    gateway.define(TOLD)
    stored = TOLD.replace("CREATE STREAM s", "CREATE OR REPLACE STREAM s FILL_HISTORY 1 INTO p2")
    assert refusal(lambda: gateway.define(stored.replace("FILL_HISTORY 1", ""))).code == (
        "E_STREAM_STATE"
    )
    gateway.define(stored)
    stream = gateway.catalog.stream("d", "s")
    assert stream is not None and stream.plan.target.table_id == table(gateway, "p2").id
    gateway.define(stored.replace("INTO p2", ""))
    stream = gateway.catalog.stream("d", "s")
    assert stream is not None and not stream.plan.target.stored
    assert table(gateway, "p2"), "its result stays"


def test_explain_says_that_there_is_no_table(gateway: MemoryGateway) -> None:
    items = explained(gateway, TOLD)
    assert items["target"] == "none: results are in the events of NOTIFY only"
    assert items["columns"] == "_wstart TIMESTAMP, total BIGINT" and items["tags"] == ""


# -------------------------------------------------------------------- streams into stream tables


def add_stream_table(gateway: MemoryGateway) -> Table:
    columns = [Column("ts", ColumnType("TIMESTAMP")), Column("total", ColumnType("BIGINT"))]
    made = stream_tables.create(
        gateway.catalog, gateway.writer.new_id, "d", "ha", columns, Replicated(11, 5, 5)
    )
    for entry in made.puts:
        gateway.catalog.put(entry)
    return table(gateway, "ha")


def test_a_stream_into_a_stream_table_writes_beside_it(gateway: MemoryGateway) -> None:
    sink = add_stream_table(gateway)
    gateway.log.append("in.d", b"x", None, 1)
    gateway.define(STREAM.replace("INTO r", "INTO ha"))
    beside = table(gateway, "ha_from_s")
    assert beside.options["inlet_of"] == str(sink.id)
    assert json.loads(beside.options["inlet_from"])["1"] >= 1
    statement = parse_one(STREAM.replace("INTO r", "INTO ha (ts, wrong)"))
    assert isinstance(statement, st.CreateStream)
    error = refusal(lambda: stream_sink.redirect(gateway.definer, statement, "d"))
    assert error.code == "E_NO_COLUMN" and "ts, total" in error.hint
    same = parse_one(STREAM)
    assert isinstance(same, st.CreateStream)
    assert stream_sink.redirect(gateway.definer, same, "d") == (same, None)


# -------------------------------------------------------------------- users, roles, rights


def user(gateway: MemoryGateway, name: str) -> User:
    found = gateway.catalog.user(name)
    assert found is not None
    return found


def test_users_roles_and_what_they_may(gateway: MemoryGateway) -> None:
    gateway.define("CREATE USER bob PASS 'a long password'; CREATE ROLE readers")
    assert "password" not in user(gateway, "bob").password
    gateway.define("GRANT READ ON d.met TO bob; GRANT READ, WRITE ON DATABASE d TO ROLE readers")
    assert gateway.access.may("bob", "READ", table(gateway, "met"))
    assert not gateway.access.may("bob", "READ", table(gateway, "p"))
    gateway.define("GRANT ROLE readers TO bob")
    assert gateway.access.may("bob", "WRITE", table(gateway, "p"))
    gateway.define("REVOKE ROLE readers FROM bob; REVOKE READ ON d.met FROM bob")
    assert not gateway.access.may("bob", "READ", table(gateway, "met"))
    generation = user(gateway, "bob").generation
    before = user(gateway, "bob").password
    gateway.define("REVOKE TOKENS FROM bob; ALTER USER bob PASS 'another one here' ENABLE 0")
    changed = user(gateway, "bob")
    assert changed.generation > generation
    assert changed.password != before and not changed.enabled
    gateway.define("DROP USER bob; DROP ROLE readers; DROP USER IF EXISTS bob")
    assert gateway.catalog.user("bob") is None and gateway.catalog.roles() == []


def test_rights_on_streams_and_everything(gateway: MemoryGateway) -> None:
    gateway.define(f"CREATE USER bob PASS 'a long password'; {STREAM}")
    gateway.define("GRANT READ ON STREAM d.s TO bob")
    assert gateway.access.may("bob", "READ", gateway.catalog.stream("d", "s"))
    gateway.define("GRANT ALL ON *.* TO bob")
    assert gateway.access.may("bob", "ADMIN", None)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("GRANT READ ON d.none TO bob", "E_NO_TABLE"),
        ("GRANT READ ON d.child TO bob", "E_CHILD_TABLE"),
        ("GRANT READ ON STREAM d.none TO bob", "E_NO_STREAM"),
        ("GRANT READ ON DATABASE none TO bob", "E_NO_DATABASE"),
        ("CREATE USER bob PASS 'a long password'", "E_USER_EXISTS"),
        ("DROP USER none", "E_NO_USER"),
    ],
)
def test_what_cannot_be_granted(gateway: MemoryGateway, sql: str, code: str) -> None:
    gateway.define("CREATE USER bob PASS 'a long password'; CREATE TABLE child USING met TAGS (1)")
    assert refusal(lambda: gateway.define(sql)).code == code


# -------------------------------------------------------------------- DROP and DELETE


def test_a_dropped_table_leaves_its_topic_and_nothing_in_redis(gateway: MemoryGateway) -> None:
    met = table(gateway, "met")
    gateway.redis.hset(names.children(met.id), "born", "{}")
    gateway.redis.hset(names.last_row("d", "met"), "born", "{}")
    gateway.define("DROP STABLE met; DROP TABLE IF EXISTS met")
    assert gateway.catalog.table("d", "met") is None
    assert not gateway.redis.exists(names.children(met.id), names.last_row("d", "met"))
    assert "in.d" in gateway.log.partitions
    assert refusal(lambda: gateway.define("DROP STABLE p")).code == "E_NOT_A_STABLE"
    assert refusal(lambda: gateway.define("DROP TABLE none")).code == "E_NO_TABLE"


def test_a_childs_rows_go_with_it(gateway: MemoryGateway) -> None:
    gateway.define("CREATE TABLE c1 USING met TAGS (1)")
    gateway.define("DROP TABLE c1")
    assert gateway.catalog.child("d", "c1") is None
    ((_, control),) = [(p, c) for p, c in gateway.controls("in.d") if c.kind == "delete"]
    assert control.tables == ("c1",)
    assert control.low < -(10**17) and control.high > 10**17


def test_a_childs_name_stays_until_the_store_has_taken_its_drop(gateway: MemoryGateway) -> None:
    gateway.define("CREATE TABLE c1 USING met TAGS (1)")
    about = {"host": "h", "started": time.time(), "seen": time.time()}
    gateway.redis.hset(names.nodes(), "1:store", json.dumps(about))
    assert refusal(lambda: gateway.define("DROP TABLE c1")).code == "E_NOT_LIVE"
    assert gateway.catalog.child("d", "c1") is not None


def test_deletes_go_to_the_partitions_that_may_hold_such_rows(gateway: MemoryGateway) -> None:
    home = database_of(gateway.catalog, "d")
    layout = layout_of(home, table(gateway, "met"))
    where = gateway.parts.removal.delete_rows(layout, None, 1, 9)
    assert set(where) == {("in.d", 0), ("in.d", 1)}
    one = gateway.parts.removal.delete_rows(layout, ("c1",), 1, 9, echo="b")
    assert len(one) == 1
    controls = [c for _, c in gateway.controls("in.d")]
    assert [c.id for c in controls].count("b") == 1
    assert isinstance(controls[0], ControlRecord) and (controls[0].low, controls[0].high) == (1, 9)


def test_a_dropped_database_stops_its_streams(gateway: MemoryGateway) -> None:
    gateway.define(STREAM)
    gateway.define("DROP DATABASE d; DROP DATABASE IF EXISTS d")
    assert gateway.catalog.databases() == []
    assert [k for p, k in gateway.kinds("in.d") if p == 0] == ["stream_on", "stream_off"]
    assert gateway.redis.sismember(names.topics_dropped(), "in.d")


# -------------------------------------------------------------------- functions, snodes


def test_functions_only_where_the_operator_allows_them(gateway: MemoryGateway) -> None:
    sql = "CREATE FUNCTION f (a DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS 'def f(a): return a'"
    assert refusal(lambda: gateway.define(sql)).code == "E_FORBIDDEN"


def test_snodes_are_made_where_their_service_runs(gateway: MemoryGateway) -> None:
    assert refusal(lambda: gateway.define("CREATE SNODE ON DNODE 3")).code == "E_NO_DNODE"
    about = {"host": "h", "started": time.time(), "seen": time.time()}
    gateway.redis.hset(names.nodes(), "3:store", json.dumps(about))
    error = refusal(lambda: gateway.define("CREATE SNODE ON DNODE 3"))
    assert "no snode service runs" in error.message
    gateway.redis.hset(names.nodes(), "3:snode", json.dumps(about))
    gateway.define("CREATE SNODE ON DNODE 3")
    assert gateway.catalog.snode(3) is not None
    gateway.define("DROP SNODE ON DNODE 3")
    assert gateway.catalog.snode(3) is None


# -------------------------------------------------------------------- views


def test_a_view_begins_at_the_end_of_its_source_or_at_its_beginning(gateway: MemoryGateway) -> None:
    gateway.log.append("in.d", b"x", None, 1)
    gateway.define("CREATE MATERIALIZED VIEW v AS SELECT a FROM p WHERE a > 1")
    view = gateway.catalog.view("d", "v")
    assert view is not None and view.owns_target and view.on_error == "retry"
    owner, _, token = view.begin[0].partition(".")
    assert owner == str(table(gateway, "p").id)
    assert Cursor.from_token(token).offsets == {0: 0, 1: 1}
    assert [c.name for c in table(gateway, "v").columns] == ["ts", "a"]
    gateway.define(
        "CREATE MATERIALIZED VIEW w ON_ERROR STOP AS SELECT a FROM p WHERE _tp_time > earliest_ts()"
    )
    rewound = gateway.catalog.view("d", "w")
    assert rewound is not None and rewound.on_error == "stop"
    assert Cursor.from_token(rewound.begin[0].partition(".")[2]).offsets == {0: 0, 1: 0}
    gateway.define("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT a FROM p")
    gateway.define("DROP MATERIALIZED VIEW v")
    assert gateway.catalog.view("d", "v") is None and gateway.catalog.table("d", "v") is None


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE MATERIALIZED VIEW x AS SELECT a FROM none", "E_NO_TABLE"),
        ("CREATE MATERIALIZED VIEW x INTO p AS SELECT a AS b FROM p", "E_TARGET_COLUMNS"),
        ("CREATE MATERIALIZED VIEW x INTO p AS SELECT a FROM met", "E_TARGET_NOT_STABLE"),
        ("CREATE MATERIALIZED VIEW x INTO t AS SELECT a FROM p", "E_TARGET_COLUMNS"),
    ],
)
def test_views_that_cannot_be(gateway: MemoryGateway, sql: str, code: str) -> None:
    gateway.define("CREATE TABLE t (ts TIMESTAMP, a VARCHAR(4))")
    assert refusal(lambda: gateway.define(sql)).code == code


def test_views_are_paused_and_go_on(gateway: MemoryGateway) -> None:
    gateway.define("CREATE MATERIALIZED VIEW v AS SELECT a FROM p")
    gateway.define("SYSTEM PAUSE MATERIALIZED VIEW v")
    view = gateway.catalog.view("d", "v")
    assert view is not None and view.status == "paused"
    gateway.redis.hset(names.view_status(view.id), "state", "paused")
    gateway.define("SYSTEM RESUME MATERIALIZED VIEW v")
    resumed = gateway.catalog.view("d", "v")
    assert resumed is not None and resumed.status == "running"
    assert gateway.redis.hget(names.view_status(view.id), "state") == b"starting"
    about = {"host": "h", "started": time.time(), "seen": time.time()}
    gateway.redis.hset(names.nodes(), "1:federation", json.dumps(about))
    error = refusal(lambda: gateway.define("SYSTEM PAUSE MATERIALIZED VIEW v"))
    assert error.code == "E_NOT_LIVE" and "still on their way" in error.message


def test_a_view_over_an_external_stream_begins_where_its_shards_are(
    gateway: MemoryGateway,
) -> None:
    far = add_far(gateway)
    start: Any = gateway.parts.definitions._views._start
    assert isinstance(start, ViewStart)
    assert start.tokens(far, earliest=True) == ("earliest", "earliest")
    gateway.define(
        "CREATE MATERIALIZED VIEW v INTO p AS SELECT a FROM far WHERE _tp_time > earliest_ts()"
    )
    view = gateway.catalog.view("d", "v")
    assert view is not None and view.begin == ("earliest", "earliest")
    assert view.source_id == far.id
    assert isinstance(gateway.parts.definitions._views, MaterializedViews)


# -------------------------------------------------------------------- mirrors, external streams


def test_a_stream_over_an_external_stream_reads_a_mirror(gateway: MemoryGateway) -> None:
    add_far(gateway)
    mirrors: Any = gateway.parts.definitions._mirrors
    assert isinstance(mirrors, Mirrors)
    gateway.define(
        "CREATE STREAM m FILL_HISTORY 1 INTO mr AS SELECT _wstart, sum(a) AS s FROM far INTERVAL(1s)"
    )
    mirror = gateway.catalog.table("d", names.mirror("far", history=True))
    assert mirror is not None
    (view,) = gateway.catalog.views()
    assert view.mirror and view.target_id == mirror.id and view.begin == ("earliest", "earliest")
    stream = gateway.catalog.stream("d", "m")
    assert stream is not None and stream.plan.source.table == mirror.name
    gateway.define("DROP STREAM m")
    assert gateway.catalog.views() == [], "nothing reads it any more"


def test_external_streams_are_dropped_with_their_passwords(gateway: MemoryGateway) -> None:
    far = add_far(gateway)
    external.keep_secret(gateway.directory, far.id, "secret")
    gateway.define("DROP EXTERNAL STREAM far")
    assert gateway.catalog.external("d", "far") is None
    assert external.secret(gateway.directory, far.id) == ""
    again = add_far(gateway)
    external.keep_secret(gateway.directory, again.id, "secret")
    gateway.define("DROP STREAM far")
    assert external.secret(gateway.directory, again.id) == ""

"""Old names of a connection: each warns, and does what the new one does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from penstock.client.connection import Connection
from penstock.client.connection_options import ConnectionOptions
from penstock.client.databases import Database
from penstock.client.old_names import ON_CONNECTION, ON_DATABASE, with_old_keywords
from penstock.client.stream_definitions import stream_table
from penstock.client.stream_table_options import StreamTableOptions
from penstock.client.subscription_options import SubscriptionOptions
from penstock.client.table_handles import table
from tests.unit.penstock.client.recorded import RecordedHa

TRADES = table(["ts", "n"], ["TIMESTAMP", "INT"])
SHARED = stream_table(["ts", "n"], ["TIMESTAMP", "INT"])
PURGE: dict[str, Any] = {
    "cache_purge_time_column": "ts",
    "cache_purge_interval": "7h",
    "cache_retention_time": timedelta(hours=2),
}
WATCH = SubscriptionOptions(True, 10, 0.5, 3, True, "n > 1", True, True, True, 11)

Call = Callable[[Any], Any]
#: old name, a call of it, and what to write now
CASES: list[tuple[str, Call, Call]] = [
    ("appender", lambda c: c.appender("t", window=8), lambda ha: ha.appender("t", window=8)),
    ("close_stream_tables", lambda c: c.close_stream_tables(), lambda ha: ha.close()),
    ("describe_table", lambda c: c.describe_table("t"), lambda ha: ha.describe("t")),
    ("drop_database", lambda c: c.drop_database("d"), lambda ha: ha.drop_database("d")),
    ("dropDatabase", lambda c: c.dropDatabase("d"), lambda ha: ha.drop_database("d")),
    ("drop_stream_table", lambda c: c.drop_stream_table("t"), lambda ha: ha.drop("t")),
    ("dropStreamTable", lambda c: c.dropStreamTable("t", True), lambda ha: ha.drop("t", True)),
    (
        "enable_table_share_and_persistence",
        lambda c: c.enable_table_share_and_persistence(
            SHARED, "t", False, False, 500, 60, 1, 7, **PURGE, raft_group=12
        ),
        lambda ha: ha.share(
            SHARED,
            "t",
            raft_group=12,
            cache_limit=500,
            options=StreamTableOptions(
                retention_minutes=60, pre_cache=7, compress=False, flush_mode=1, **PURGE
            ),
        ),
    ),
    (
        "enableTableShareAndPersistence",
        lambda c: c.enableTableShareAndPersistence(SHARED, "t", flushMode=0, cacheSize=None),
        lambda ha: ha.share(SHARED, "t", options=StreamTableOptions(async_write=True)),
    ),
    ("exists_database", lambda c: c.exists_database("d"), lambda ha: ha.exists_database("d")),
    ("existsDatabase", lambda c: c.existsDatabase("d"), lambda ha: ha.exists_database("d")),
    ("get_persistence_meta", lambda c: c.get_persistence_meta("t"), lambda ha: ha.meta("t")),
    (
        "getPersistenceMeta",
        lambda c: c.getPersistenceMeta("t", node="NODE2"),
        lambda ha: ha.meta("t", node="NODE2"),
    ),
    (
        "get_stream_table_changelog",
        lambda c: c.get_stream_table_changelog("t"),
        lambda ha: ha.table("t").changelog(),
    ),
    (
        "getStreamTableChangelog",
        lambda c: c.getStreamTableChangelog("t"),
        lambda ha: ha.table("t").changelog(),
    ),
    ("get_streaming_leader", lambda c: c.get_streaming_leader(11), lambda ha: ha.leader(11)),
    ("getStreamingLeader", lambda c: c.getStreamingLeader(groupId=11), lambda ha: ha.leader(11)),
    ("get_streaming_raft_groups", lambda c: c.get_streaming_raft_groups(), lambda ha: ha.groups()),
    ("getStreamingRaftGroups", lambda c: c.getStreamingRaftGroups("N"), lambda ha: ha.groups("N")),
    ("get_streaming_stat", lambda c: c.get_streaming_stat(), lambda ha: ha.stat()),
    ("getStreamingStat", lambda c: c.getStreamingStat(), lambda ha: ha.stat()),
    (
        "get_topic_processed_offset",
        lambda c: c.get_topic_processed_offset("11/d.t/a"),
        lambda ha: ha.processed_offset("11/d.t/a"),
    ),
    (
        "getTopicProcessedOffset",
        lambda c: c.getTopicProcessedOffset("11/d.t/a"),
        lambda ha: ha.processed_offset("11/d.t/a"),
    ),
    (
        "ha_stream_table",
        lambda c: c.ha_stream_table(
            11, TRADES, "t", 100, "n", 5, pre_cache=3, filter_column="n", timestamp_column="ts"
        ),
        lambda ha: ha.create(11, TRADES, "t", 100, StreamTableOptions("n", 5, 3, "n", "ts")),
    ),
    (
        "haStreamTable",
        lambda c: c.haStreamTable(11, TRADES, tableName="t", cacheLimit=100, preCache=3),
        lambda ha: ha.create(11, TRADES, "t", 100, StreamTableOptions(pre_cache=3)),
    ),
    (
        "make_database",
        lambda c: c.make_database("d", "VALUE", range(4)),
        lambda ha: ha.make_database("d", "VALUE", range(4)),
    ),
    (
        "memory_rows",
        lambda c: c.memory_rows("t", node="NODE2"),
        lambda ha: ha.memory_rows("t", node="NODE2"),
    ),
    (
        "share",
        lambda c: c.share(SHARED, "t", raft_group=12, cache_limit=5),
        lambda ha: ha.share(SHARED, "t", raft_group=12, cache_limit=5),
    ),
    ("stream_table", lambda c: c.stream_table("t"), lambda ha: ha.table("t")),
    (
        "subscribe_table",
        lambda c: c.subscribe_table(
            "NODE2", "t", "a", -3, print, True, 10, 0.5, 3, True, "n > 1", True, True, True, 11
        ),
        lambda ha: ha.subscribe("t", print, "a", offset=-3, server="NODE2", options=WATCH),
    ),
    (
        "subscribeTable",
        lambda c: c.subscribeTable(
            None, "t", actionName="a", handler=print, msgAsTable=True, handlerNeedMsgId=True
        ),
        lambda ha: (
            ha.subscribe(
                "t",
                print,
                "a",
                options=SubscriptionOptions(msg_as_table=True, handler_need_msg_id=True),
            ).topic
        ),
    ),
    ("subscription", lambda c: c.subscription("11/d.t/a"), lambda ha: ha.subscription("11/d.t/a")),
    ("table_name", lambda c: c.table_name("t"), lambda ha: ha.qualify("t")),
    (
        "unsubscribe_table",
        lambda c: c.unsubscribe_table("NODE2", "t", "a", False, 11),
        lambda ha: ha.unsubscribe("t", "a", server="NODE2", remove_offset=False, raft_group=11),
    ),
    (
        "unsubscribeTable",
        lambda c: c.unsubscribeTable(None, "t", "a", removeOffset=False, raftGroup=11),
        lambda ha: ha.unsubscribe("t", "a", remove_offset=False, raft_group=11),
    ),
]


@pytest.fixture
def ha(monkeypatch: pytest.MonkeyPatch) -> RecordedHa:
    recorded = RecordedHa()
    monkeypatch.setattr(Connection, "ha", recorded)
    return recorded


@pytest.mark.parametrize(("name", "old", "new"), CASES, ids=[name for name, _, _ in CASES])
def test_an_old_name_warns_and_does_the_same(
    ha: RecordedHa, name: str, old: Call, new: Call
) -> None:
    with Connection("http://127.0.0.1:9", "root", "x") as connection:
        with pytest.warns(DeprecationWarning, match=f"^Connection.{name} is deprecated; ") as seen:
            answer = old(connection)
    wanted = RecordedHa()
    expected = new(wanted)
    assert ha.calls == wanted.calls
    assert answer == expected
    assert [w.filename for w in seen] == [__file__], "the warning points at the caller"


def test_every_old_name_is_tried() -> None:
    assert {name for name, _, _ in CASES} == set(ON_CONNECTION)


def test_a_name_that_never_was_is_no_attribute(ha: RecordedHa) -> None:
    with Connection("http://127.0.0.1:9", "root", "x") as connection:
        with pytest.raises(AttributeError, match="'Connection' object has no attribute 'nothing'"):
            connection.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_looking_for_an_old_name_does_not_warn(ha: RecordedHa) -> None:
    with (
        Connection("http://127.0.0.1:9", "root", "x") as connection,
        warnings.catch_warnings(action="error"),
    ):
        assert hasattr(connection, "haStreamTable")


@pytest.mark.parametrize(
    ("positional", "keywords", "message"),
    [
        ((None, "t") + (0,) * 14, {}, "at most 15 arguments, not 16"),
        ((None, "t"), {"table_name": "t"}, "multiple values for argument 'table_name'"),
        ((None, "t"), {"nothing": 1}, "nothing"),
    ],
)
def test_wrong_arguments_are_refused(
    ha: RecordedHa, positional: tuple[Any, ...], keywords: dict[str, Any], message: str
) -> None:
    with Connection("http://127.0.0.1:9", "root", "x") as connection:
        with (
            pytest.warns(DeprecationWarning),
            pytest.raises(TypeError, match=message),
        ):
            connection.subscribe_table(*positional, **keywords)  # type: ignore[attr-defined]
    assert not ha.calls


class Written:
    """A connection that keeps its statements."""

    database: str | None = None

    def __init__(self) -> None:
        self.statements: list[str] = []

    def execute(
        self, sql: str, *, database: str | None = None, idempotency_key: str | None = None
    ) -> int:
        self.statements.append(sql)
        return 0


def test_old_names_of_a_database() -> None:
    assert set(ON_DATABASE) == {"createPartitionedTable"}
    made = []
    for name in ("createPartitionedTable", "create_partitioned_table"):
        connection = Written()
        database = Database(connection, "d")  # type: ignore[arg-type]
        if name in ON_DATABASE:
            with pytest.warns(DeprecationWarning, match="use create_partitioned_table"):
                getattr(database, name)(TRADES, "t", "ts", keep="30d")
        else:
            getattr(database, name)(TRADES, "t", "ts", keep="30d")
        made.append(connection.statements)
    assert made[0] == made[1] != []


def test_old_arguments_of_connect_become_options() -> None:
    given = ConnectionOptions(timezone="Asia/Tokyo", timeout=5.0)
    with pytest.warns(DeprecationWarning, match="use options=ConnectionOptions\\(timeout=…, ca=…"):
        found = with_old_keywords(given, {"timeout": 7.0, "ca": "ca.pem"})
    assert found == ConnectionOptions("Asia/Tokyo", 7.0, None, "ca.pem")
    assert with_old_keywords(given, {}) is given
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        with_old_keywords(given, {"nothing": 1})  # type: ignore[typeddict-unknown-key]


def test_a_connection_takes_old_arguments_and_options() -> None:
    with pytest.warns(DeprecationWarning, match="^connect\\(…, timezone=…\\)") as seen:
        old = Connection("http://127.0.0.1:9", "root", "x", timezone="Asia/Tokyo")
    assert [w.filename for w in seen] == [__file__]
    options = ConnectionOptions(timezone="Asia/Tokyo")
    new = Connection("http://127.0.0.1:9", "root", "x", options=options)
    assert old.timezone == new.timezone == "Asia/Tokyo"
    old.close()
    new.close()

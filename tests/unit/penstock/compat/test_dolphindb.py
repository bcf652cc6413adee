"""DolphinDB's functions do what `Connection.ha` does, and take their arguments in its order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.client.connection import Connection
from penstock.client.old_names import ON_CONNECTION
from penstock.client.stream_definitions import keyed_stream_table, stream_table
from penstock.client.stream_table_options import StreamTableOptions
from penstock.client.subscription_options import SubscriptionOptions
from penstock.client.table_handles import table
from penstock.compat import dolphindb as ddb
from tests.unit.penstock.client.recorded import RecordedHa

TRADES = table(["ts", "n"], ["TIMESTAMP", "INT"])
SHARED = stream_table(["ts", "n"], ["TIMESTAMP", "INT"])
WATCH = SubscriptionOptions(True, 10, 0.5, 3, True, "n > 1", True, True, True, 11)

Call = Callable[[Any], Any]
CASES: list[tuple[str, Call, Call]] = [
    (
        "database",
        lambda c: ddb.database(c, "dfs://d", "VALUE", range(4)),
        lambda ha: ha.make_database("dfs://d", "VALUE", range(4)),
    ),
    ("dropDatabase", lambda c: ddb.dropDatabase(c, "d"), lambda ha: ha.drop_database("d")),
    ("dropStreamTable", lambda c: ddb.dropStreamTable(c, "t"), lambda ha: ha.drop("t")),
    (
        "enableTableShareAndPersistence",
        lambda c: ddb.enableTableShareAndPersistence(
            c, SHARED, "t", False, False, 500, 60, 1, 7, "ts", "7H", "2H"
        ),
        lambda ha: ha.share(
            SHARED,
            "t",
            cache_limit=500,
            options=StreamTableOptions(
                retention_minutes=60,
                pre_cache=7,
                compress=False,
                flush_mode=1,
                cache_purge_time_column="ts",
                cache_purge_interval="7H",
                cache_retention_time="2H",
            ),
        ),
    ),
    (
        "enableTableShareAndPersistence without options",
        lambda c: ddb.enableTableShareAndPersistence(c, SHARED, "t"),
        lambda ha: ha.share(SHARED, "t", options=StreamTableOptions(async_write=True)),
    ),
    ("existsDatabase", lambda c: ddb.existsDatabase(c, "d"), lambda ha: ha.exists_database("d")),
    (
        "getPersistenceMeta",
        lambda c: ddb.getPersistenceMeta(c, "t", node="NODE2"),
        lambda ha: ha.meta("t", node="NODE2"),
    ),
    (
        "getStreamTableChangelog",
        lambda c: ddb.getStreamTableChangelog(c, "t"),
        lambda ha: ha.table("t").changelog(),
    ),
    ("getStreamingLeader", lambda c: ddb.getStreamingLeader(c, 11), lambda ha: ha.leader(11)),
    ("getStreamingRaftGroups", lambda c: ddb.getStreamingRaftGroups(c), lambda ha: ha.groups()),
    ("getStreamingStat", ddb.getStreamingStat, lambda ha: ha.stat()),
    (
        "getTopicProcessedOffset",
        lambda c: ddb.getTopicProcessedOffset(c, "11/d.t/a"),
        lambda ha: ha.processed_offset("11/d.t/a"),
    ),
    (
        "haStreamTable",
        lambda c: ddb.haStreamTable(c, 11, TRADES, "t", 100, "n", 5, 3),
        lambda ha: ha.create(11, TRADES, "t", 100, StreamTableOptions("n", 5, 3)),
    ),
    ("share", lambda c: ddb.share(c, SHARED, "t"), lambda ha: ha.share(SHARED, "t")),
    (
        "subscribeTable",
        lambda c: ddb.subscribeTable(
            c, "NODE2", "t", "a", -3, print, True, 10, 0.5, 3, True, "n > 1", True, True, True, 11
        ),
        lambda ha: ha.subscribe("t", print, "a", offset=-3, server="NODE2", options=WATCH).topic,
    ),
    (
        "unsubscribeTable",
        lambda c: ddb.unsubscribeTable(c, "NODE2", "t", "a", False, 11),
        lambda ha: ha.unsubscribe("t", "a", server="NODE2", remove_offset=False, raft_group=11),
    ),
]


@pytest.mark.parametrize(("name", "function", "new"), CASES, ids=[name for name, _, _ in CASES])
def test_a_function_does_what_the_connection_does(
    monkeypatch: pytest.MonkeyPatch, name: str, function: Call, new: Call
) -> None:
    recorded = RecordedHa()
    wanted = RecordedHa()
    monkeypatch.setattr(Connection, "ha", recorded)
    with Connection("http://127.0.0.1:9", "root", "x") as connection:
        assert function(connection) == new(wanted)
    assert recorded.calls == wanted.calls


def test_definitions_are_the_same_functions() -> None:
    assert ddb.keyedStreamTable is keyed_stream_table
    assert ddb.streamTable is stream_table
    assert ddb.table is table


def test_all_of_dolphindbs_names_of_a_connection_are_here() -> None:
    camel = {name for name in ON_CONNECTION if not name.islower()}
    assert camel <= set(ddb.__all__)
    assert all(hasattr(ddb, name) for name in ddb.__all__)
    assert {ON_CONNECTION[name].new for name in camel} == {f"{ddb.__name__}.{n}" for n in camel}

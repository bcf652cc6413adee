"""What `Connection.ha` asks of the gateway: statements for tables, groups and nodes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import penstock
from penstock.client import subscribe_table
from penstock.client.stream_tables import StreamTables
from penstock.errors import CatalogError, SchemaError

TRADES = penstock.table(["ts", "n"], ["TIMESTAMP", "INT"])
GROUPS = {
    "groups": [
        {"id": 11, "alias": "trading", "members": ["NODE1", "NODE2"], "learners": ["NODE3"]},
        {"id": 12, "alias": "", "members": ["NODE2"], "learners": []},
    ],
    "nodes": {"NODE1": "http://10.0.0.1:7706", "NODE2": "http://10.0.0.2:7706", "NODE3": ""},
    "tables": {"ha.trades": 11},
}


class Answer:
    def json(self) -> dict[str, Any]:
        return GROUPS


class Gateway:
    """Knows the groups."""

    authorization = "Basic x"
    context = None

    def get(self, path: str) -> Answer:
        assert path == "/v1/groups"
        return Answer()


class Connection:
    """Keeps statements."""

    def __init__(self, database: str | None = None) -> None:
        self.database = database
        self.statements: list[str] = []

    def execute(
        self, sql: str, *, database: str | None = None, idempotency_key: str | None = None
    ) -> int:
        self.statements.append(sql)
        return 0


@pytest.fixture
def connection() -> Connection:
    return Connection("d")


@pytest.fixture
def ha(connection: Connection) -> Iterator[StreamTables]:
    made = StreamTables(connection, Gateway())  # type: ignore[arg-type]
    yield made
    made.close()


def test_a_table_is_made_with_the_options_that_are_not_at_their_defaults(
    connection: Connection, ha: StreamTables
) -> None:
    table = ha.create(11, TRADES, "t", 100)
    assert table.name == "d.t"
    ha.create(
        "trading",
        TRADES,
        "other.t",
        100,
        penstock.StreamTableOptions(["n", "a b"], 60.0, 5, "n", "came", flush_mode=1),
    )
    assert connection.statements == [
        "CREATE STREAM TABLE d.t (ts TIMESTAMP, n INT) WITH (raft_group=11, cache_limit=100)",
        "CREATE STREAM TABLE other.t (ts TIMESTAMP, n INT) WITH (raft_group='trading', cache_limit=100, key_column='n, `a b`', retention_minutes=60, pre_cache=5, filter_column='n', timestamp_column='came', flush_mode=1)",
    ]


def test_a_definition_is_shared_with_its_key_in_the_first_group(
    connection: Connection, ha: StreamTables
) -> None:
    definition = penstock.keyed_stream_table("n", ["n"], ["INT"])
    ha.share(
        definition,
        "t",
        options=penstock.StreamTableOptions(
            async_write=True,
            compress=False,
            cache_purge_time_column="arrived",
            cache_purge_interval="7H",
            cache_retention_time=timedelta(minutes=2),
        ),
    )
    ha.share(definition, "u", raft_group=12, cache_limit=5)
    columns = "(arrived TIMESTAMP, n INT)"
    keyed = "timestamp_column='arrived', key_column='n'"
    assert connection.statements == [
        f"CREATE STREAM TABLE d.t {columns} WITH (raft_group=11, cache_limit=100000, {keyed}, async_write=True, compress=False, cache_purge_time_column='arrived', cache_purge_interval='7h', cache_retention_time=120000a)",
        f"CREATE STREAM TABLE d.u {columns} WITH (raft_group=12, cache_limit=5, {keyed})",
    ]


def test_only_definitions_of_stream_tables_are_shared(ha: StreamTables) -> None:
    with pytest.raises(SchemaError, match="only a stream table can be shared, not TableDefinition"):
        ha.share(TRADES, "t")  # type: ignore[arg-type]


def test_without_a_database_tables_are_in_ha() -> None:
    connection = Connection()
    ha = StreamTables(connection, Gateway())  # type: ignore[arg-type]
    assert ha.create(11, TRADES, "t", 100).name == "ha.t"
    assert connection.statements[0] == "CREATE DATABASE IF NOT EXISTS ha"
    assert ha.qualify("x.t") == "x.t"
    assert ha.table("trades").name == "ha.trades"
    with pytest.raises(CatalogError, match="ha.nothing is no stream table"):
        ha.table("nothing")
    ha.close()


def test_dropping_by_force_is_refused(connection: Connection, ha: StreamTables) -> None:
    with pytest.raises(CatalogError, match="not dropped by force"):
        ha.drop("t", force=True)
    ha.drop("t")
    assert connection.statements == ["DROP TABLE d.t"]


def test_groups_have_their_members_with_addresses(ha: StreamTables) -> None:
    both = "10.0.0.1:7706:NODE1,10.0.0.2:7706:NODE2"
    assert ha.groups().rows == [(11, both), (12, "10.0.0.2:7706:NODE2")]
    assert ha.groups("NODE3").rows == [(11, both)]


class Subscription:
    """Keeps what a subscription is made of."""

    topic = "11/ha.trades/a"

    def __init__(self, *given: Any) -> None:
        _, self.target, self.handler, self.options, _ = given
        self.ended = False

    def open(self) -> Subscription:
        return self

    def wait(self, seconds: float | None = None) -> bool:
        return self.ended

    def close(self) -> None:
        self.ended = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribe_table, "TableSubscription", Subscription)


def test_a_subscription_has_the_options_in_force(made: None, ha: StreamTables) -> None:
    rows: list[Any] = []
    options = penstock.SubscriptionOptions(filter=["A"], raft_group="trading")
    with warnings.catch_warnings(action="error"):
        found: Any = ha.subscribe("ha.trades", rows, "a", offset=-2, options=options)
    assert (found.target.table, found.target.group, found.target.offset) == ("ha.trades", 11, -2)
    assert found.handler == rows.append
    in_force = found.options
    assert in_force == penstock.SubscriptionOptions(
        msg_as_table=True,
        reconnect=True,
        filter={"values": ["A"]},
        persist_offset=True,
        raft_group=11,
    )
    assert ha.subscription(found.topic) is found


def test_a_subscription_without_reconnect_warns(made: None, ha: StreamTables) -> None:
    with pytest.warns(UserWarning, match="ends with its leader"):
        ha.subscribe("ha.trades", print)


def test_one_subscription_of_a_name_runs_at_a_time(made: None, ha: StreamTables) -> None:
    options = penstock.SubscriptionOptions(reconnect=True)
    first = ha.subscribe("ha.trades", print, "a", options=options)
    with pytest.raises(CatalogError, match="E_SUBSCRIPTION_EXISTS"):
        ha.subscribe("ha.trades", print, "a", options=options)
    ha.subscribe("ha.trades", print, "b", options=options)
    first.close()
    assert ha.subscribe("ha.trades", print, "a", options=options) is not first


def test_a_subscription_needs_a_handler(ha: StreamTables) -> None:
    with pytest.raises(SchemaError, match="needs a handler"):
        ha.subscribe("ha.trades", None)

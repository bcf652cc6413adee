"""The store's endpoint, with the real Flight server and TLS: who comes in, and what they may read.
Queries behind it are the other tests'.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.auth.passwords import hash_setting
from penstock.catalog.model import Database, Grant, Table, TableVersion, User, View
from penstock.catalog.view import Catalog
from penstock.config.settings import Settings
from penstock.errors import BusError
from penstock.rows.parameters import Parameters
from penstock.runtime import tls
from penstock.runtime.clock import SystemClock
from penstock.sql.plan import Column
from penstock.types import ColumnType
from services.store.flight import StoreServer
from services.store.flight_answers import FlightAnswers
from services.store.flight_lists import FlightLists
from services.store.flight_queries import FlightQueries
from services.store.gateway_statements import GatewayStatements
from services.store.partitions import Partitions
from services.store.query import Permit, Queries
from tests.certificates import issued

COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("n", ColumnType("INT")),
    Column("price", ColumnType("DECIMAL", precision=12, scale=2)),
)
TAGS = (Column("site", ColumnType("VARCHAR", length=16)),)
TABLES = {
    "mine": Table(2, "d", "mine", "plain", "in.d", 1, "ms", (TableVersion(20, COLUMNS),)),
    "theirs": Table(
        3, "d", "theirs", "stable", "in.d", 1, "us", (TableVersion(30, COLUMNS, TAGS),)
    ),
}
CATALOG = Catalog(
    [
        Database(1, "d"),
        Database(4, "empty_one"),
        *TABLES.values(),
        View(5, "d", "shown", "SELECT * FROM mine", 2, 3),
        User(9, "ann", hash_setting("anns password"), grants=(Grant("READ", 2),)),
    ]
)


class _Asked:
    """Stands where queries are answered: names of tables in, one row out."""

    def __init__(self) -> None:
        self.parameters: Parameters | None = None
        self.database = ""

    def describe(self, *_: Any, **__: Any) -> pa.Schema:
        return pa.schema([("n", pa.int64())])

    def find_table(self, database: str, name: str) -> Table | None:
        return CATALOG.table(database, name)

    def run(
        self,
        sql: str,
        database: str,
        timezone: str,
        *,
        parameters: Parameters | None,
        positions: bool,
        permit: Permit | None,
    ) -> pa.Table:
        self.parameters = parameters
        self.database = database
        for name in sql.split():
            if permit is not None:
                permit("d", name, TABLES.get(name))
        return pa.table({"n": [1]})


def _reached(revision: int, patience: float) -> None:
    if revision > CATALOG.revision:
        raise BusError("the catalog does not get there in time", detail=f"in {patience:g} s")


@contextmanager
def served(
    directory: Path, asked: _Asked, *, max_queries: int = 0, gateway_url: str = "127.0.0.1:9"
) -> Iterator[tuple[str, bytes]]:
    """Address and authority of a store that answers as *asked* does."""
    made = issued(directory)
    settings = Settings(tls_cert=made.cert, tls_key=made.key)
    partitions: Any = None
    access = Access(lambda: CATALOG, "root")
    queries = FlightQueries(
        cast(Queries, asked),
        cast(Partitions, partitions),
        access,
        reached=_reached,
        own_writes_seconds=1.0,
        max_queries=max_queries,
    )
    gateway = GatewayStatements(gateway_url, timeout=20)
    server = StoreServer(
        "grpc+tls://127.0.0.1:0",
        FlightAnswers(queries, gateway),
        FlightLists(lambda: CATALOG, access),
        gateway,
        cast(Partitions, partitions),
        login=Login(lambda: CATALOG, "root", "secret", SystemClock(), "k" * 48),
        access=access,
        **tls.flight_server(settings),
    )
    try:
        yield f"127.0.0.1:{server.port}", made.ca.read_bytes()
    finally:
        server.shutdown()
        gateway.close()


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, bytes]]:
    with served(tmp_path_factory.mktemp("tls"), _Asked()) as way:
        yield way


def ask(endpoint: tuple[str, bytes], names: str, key: str | None, **more: object) -> int:
    headers = (
        [] if key is None else [(b"authorization", b"Basic " + base64.b64encode(key.encode()))]
    )
    options = flight.FlightCallOptions(headers=headers, timeout=20)
    with flight.FlightClient(f"grpc+tls://{endpoint[0]}", tls_root_certs=endpoint[1]) as client:
        return int(
            client.do_get(flight.Ticket(json.dumps({"sql": names, **more}).encode()), options)
            .read_all()
            .num_rows
        )


def test_root_and_users_read_what_is_theirs(endpoint: tuple[str, bytes]) -> None:
    assert ask(endpoint, "mine theirs nothing", "root:secret") == 1
    assert ask(endpoint, "mine", "ann:anns password") == 1


def test_who_knows_a_newer_catalog_is_not_answered_from_an_older_one(
    endpoint: tuple[str, bytes],
) -> None:
    assert ask(endpoint, "mine", "root:secret", revision=CATALOG.revision) == 1
    with pytest.raises(flight.FlightError, match="the store is behind"):
        ask(endpoint, "mine", "root:secret", revision=CATALOG.revision + 1)


@pytest.mark.parametrize("names", ["theirs", "mine theirs", "nothing"])
def test_the_rest_is_refused_by_name(endpoint: tuple[str, bytes], names: str) -> None:
    with pytest.raises(flight.FlightUnauthorizedError, match=f"READ on .*{names.split()[-1]}"):
        ask(endpoint, names, "ann:anns password")


@pytest.mark.parametrize("key", [None, "root:wrong", "nobody:x", "ann:secret"])
def test_nobody_comes_in_without_a_key(endpoint: tuple[str, bytes], key: str | None) -> None:
    with pytest.raises(flight.FlightUnauthenticatedError, match="E_AUTH"):
        ask(endpoint, "mine", key)


def test_a_user_has_so_many_queries_at_once(tmp_path: Path) -> None:
    begun = threading.Event()
    go_on = threading.Event()

    class Slow(_Asked):
        def run(self, *args: Any, **more: Any) -> pa.Table:
            begun.set()
            go_on.wait(20)
            return super().run(*args, **more)

    with served(tmp_path, Slow(), max_queries=1) as way, ThreadPoolExecutor() as threads:
        first = threads.submit(ask, way, "mine", "ann:anns password")
        assert begun.wait(20)
        with pytest.raises(flight.FlightUnavailableError, match="E_OVERLOAD"):
            ask(way, "mine", "ann:anns password")
        # gateways come as root and have limits of their own
        second = threads.submit(ask, way, "mine", "root:secret")
        go_on.set()
        assert (first.result(20), second.result(20)) == (1, 1)
        assert ask(way, "mine", "ann:anns password") == 1


def _command(kind: str, sql: str) -> bytes:
    """As drivers of Flight SQL send it: protobuf's Any around a message whose first field is the
    query's text.
    """
    url = b"type.googleapis.com/arrow.flight.protocol.sql." + kind.encode()
    text = sql.encode()
    value = b"\n" + bytes([len(text)]) + text
    return b"\n" + bytes([len(url)]) + url + b"\x12" + bytes([len(value)]) + value


def test_flight_sql_answers_a_query_after_a_handshake(endpoint: tuple[str, bytes]) -> None:
    # ADBC's driver leaves out the padding of base64
    basic = base64.b64encode(b"ann:anns password").rstrip(b"=")
    given = flight.FlightCallOptions(headers=[(b"authorization", b"Basic " + basic)], timeout=20)
    with flight.FlightClient(f"grpc+tls://{endpoint[0]}", tls_root_certs=endpoint[1]) as client:
        token = client.authenticate_basic_token("ann", "anns password")
        assert token[1].startswith(b"Bearer ") and b"anns" not in token[1]
        for options in (given, flight.FlightCallOptions(headers=[token], timeout=20)):
            for command in (_command("CommandStatementQuery", "mine"), b"mine"):
                info = client.get_flight_info(flight.FlightDescriptor.for_command(command), options)
                assert client.do_get(info.endpoints[0].ticket, options).read_all().to_pylist() == [
                    {"n": 1}
                ]
        info = client.get_flight_info(
            flight.FlightDescriptor.for_command(_command("CommandStatementQuery", "theirs")),
            options,
        )
        with pytest.raises(flight.FlightUnauthorizedError, match="READ on"):
            client.do_get(info.endpoints[0].ticket, options).read_all()
        with pytest.raises(NotImplementedError, match="CommandStatementSubstraitPlan"):
            client.get_flight_info(
                flight.FlightDescriptor.for_command(_command("CommandStatementSubstraitPlan", "")),
                options,
            )
        with pytest.raises(NotImplementedError):
            list(client.do_action("BeginTransaction", options))
        with pytest.raises(pa.ArrowInvalid, match="E_REQUEST"):
            client.get_flight_info(flight.FlightDescriptor.for_command(b"\n\xff"), options)


@pytest.mark.parametrize("key", ["ann:wrong", "nobody:x"])
def test_nobody_shakes_hands_without_a_key(endpoint: tuple[str, bytes], key: str) -> None:
    with (
        flight.FlightClient(f"grpc+tls://{endpoint[0]}", tls_root_certs=endpoint[1]) as client,
        pytest.raises(flight.FlightUnauthenticatedError, match="E_AUTH"),
    ):
        client.authenticate_basic_token(*key.split(":"))


def test_actions_are_for_who_may_read_everything(endpoint: tuple[str, bytes]) -> None:
    options = flight.FlightCallOptions(
        headers=[(b"authorization", b"Bearer ann:anns password")], timeout=20
    )
    with (
        flight.FlightClient(f"grpc+tls://{endpoint[0]}", tls_root_certs=endpoint[1]) as client,
        pytest.raises(flight.FlightUnauthorizedError, match="READ on everything"),
    ):
        list(client.do_action("positions", options))


def test_in_the_clear_or_without_trust_there_is_no_answer(endpoint: tuple[str, bytes]) -> None:
    options = flight.FlightCallOptions(
        headers=[(b"authorization", b"Bearer root:secret")], timeout=5
    )
    for scheme in ("grpc", "grpc+tls"):
        with (
            flight.FlightClient(f"{scheme}://{endpoint[0]}") as client,
            pytest.raises(flight.FlightError),
        ):
            client.do_get(flight.Ticket(b'{"sql": "mine"}'), options).read_all()


def test_calls_that_there_are_not_tell_nothing_and_ask_who_it_is_first(
    endpoint: tuple[str, bytes],
) -> None:
    descriptor = flight.FlightDescriptor.for_path("x")

    def put(client: flight.FlightClient, options: flight.FlightCallOptions) -> None:
        writer, _ = client.do_put(descriptor, pa.schema([("n", pa.int64())]), options)
        writer.close()

    def exchange(client: flight.FlightClient, options: flight.FlightCallOptions) -> None:
        writer, reader = client.do_exchange(descriptor, options)
        writer.begin(pa.schema([("n", pa.int64())]))
        writer.done_writing()
        reader.read_all()

    def schema(client: flight.FlightClient, options: flight.FlightCallOptions) -> None:
        client.get_schema(descriptor, options)

    calls: list[Callable[[flight.FlightClient, flight.FlightCallOptions], object]] = [
        lambda client, options: list(client.list_flights(options=options)),
        schema,
        lambda client, options: client.get_flight_info(descriptor, options),
        lambda client, options: list(client.do_action("x", options)),
        lambda client, options: client.get_flight_info(
            flight.FlightDescriptor.for_command(_command("CommandStatementSubstraitPlan", "")),
            options,
        ),
        put,
        exchange,
    ]
    for key, kind in (
        ("ann:anns password", NotImplementedError),
        ("ann:wrong", flight.FlightUnauthenticatedError),
    ):
        options = flight.FlightCallOptions(
            headers=[(b"authorization", b"Bearer " + key.encode())], timeout=20
        )
        with flight.FlightClient(f"grpc+tls://{endpoint[0]}", tls_root_certs=endpoint[1]) as client:
            for call in calls:
                # Arrow has no other status for an error of get_schema that tells no traceback
                wanted = (kind, pa.ArrowInvalid) if call is schema else kind
                with pytest.raises(wanted) as told:
                    call(client, options)
                assert "Traceback" not in str(told.value) and ".py" not in str(told.value)
            if kind is not NotImplementedError:
                with pytest.raises(kind):
                    client.list_actions(options)


def test_wrong_passwords_over_flight_are_counted_under_the_peers_address(
    endpoint: tuple[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, object]] = []
    monkeypatch.setattr(
        "penstock.runtime.audit.write",
        lambda event, **fields: told.append({"event": event, **fields}),
    )
    with pytest.raises(flight.FlightUnauthenticatedError):
        ask(endpoint, "mine", "somebody:wrong")
    assert [(t["event"], t["remote"]) for t in told] == [("login refused", "127.0.0.1")]


@pytest.mark.parametrize(
    ("ticket", "words"),
    [
        (b"\xff\xfe", "E_REQUEST"),
        (b'{"sql": 5}', "it has no sql"),
        (b"{}", "it has no sql"),
        (b"[" * 100_000, "E_"),
        (b'{"sql": "mine", "after": [1]}', "after is no object"),
        (b'{"sql": "mine", "after": {"t:x": 1}}', "E_REQUEST"),
        (b'{"sql": "mine", "after": {"t:0": "1"}}', "an offset is no number"),
        (b'{"sql": "mine", "revision": "1"}', "revision is no number"),
        (b'{"sql": "mine", "database": {}}', "E_REQUEST|mine"),
        (b'{"sql": "mine", "timezone": 1}', "timezone is no text"),
        (b'{"sql_query": "mine", "database": "d", "query_type": "influxql"}', "InfluxQL at /query"),
        (b"\n\x05hello", "E_REQUEST"),
        (b"\n" + b"\xff" * 40, "E_REQUEST"),
    ],
)
def test_hostile_tickets_are_told_what_is_wrong(
    endpoint: tuple[str, bytes], ticket: bytes, words: str
) -> None:
    options = flight.FlightCallOptions(
        headers=[(b"authorization", b"Bearer root:secret")], timeout=20
    )
    with flight.FlightClient(f"grpc+tls://{endpoint[0]}", tls_root_certs=endpoint[1]) as client:
        try:
            told = str(client.do_get(flight.Ticket(ticket), options).read_all().to_pylist())
        except pa.ArrowException as error:
            told = str(error)
    assert re.search(words, told) or told == "[{'n': 1}]"
    assert "Traceback" not in told and "E_INTERNAL" not in told


def test_a_ticket_of_influxdb_and_a_default_database(tmp_path: Path) -> None:
    asked = _Asked()
    with served(tmp_path, asked) as way:
        ticket = {"sql_query": "mine", "database": "d", "query_type": "sql"}
        key = (b"authorization", b"Token ann:anns password")
        with flight.FlightClient(f"grpc+tls://{way[0]}", tls_root_certs=way[1]) as client:
            options = flight.FlightCallOptions(headers=[key, (b"database", b"e")], timeout=20)
            client.do_get(flight.Ticket(json.dumps(ticket).encode()), options).read_all()
            assert asked.database == "d"
            client.do_get(flight.Ticket(b"mine"), options).read_all()
            assert asked.database == "e"

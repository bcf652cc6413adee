"""The link: questions, subscriptions that continue exactly, and appends that count once; over kills
of the service that serves it.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pyarrow as pa
import pytest

from penstock.errors import AuthError, CatalogError, PenstockError, SchemaError
from penstock.link.address import LinkLost
from penstock.link.channel import Channel
from penstock.link.client import Link
from penstock.mesh.running import RunningMesh, running_mesh
from tests.stack.conftest import eventually
from tests.stack.federation_kit import (
    ENVIRONMENT,
    METERS,
    SERVICES,
    T0,
    address_of,
    client_of,
    link_to,
    rows,
)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    with running_mesh(
        tmp_path_factory.mktemp("serving"), services=SERVICES, environment=ENVIRONMENT
    ) as mesh:
        yield mesh


def _gather(channel: Channel, count: int) -> pl.DataFrame:
    frames: list[pl.DataFrame] = []
    while sum(f.height for f in frames) < count:
        message = channel.get(30)
        assert message is not None, f"{sum(f.height for f in frames)} of {count} rows came"
        if message.rows is not None:
            frames.append(pl.DataFrame(message.rows))
    return pl.concat(frames, how="diagonal")  # of later definitions, which have more columns


def test_questions(serving: RunningMesh) -> None:
    with client_of(serving) as client, link_to(serving) as link:
        client.execute("CREATE DATABASE ask PARTITIONS 2")
        client.execute(METERS, database="ask")
        client.write("ask.meters", rows(0, 1000))
        described = link.describe("meters", "ask")
        assert [c.name for c in described.fields] == [
            "ts",
            "v",
            "note",
            "site",
        ] and described.is_stable
        assert link.query("SELECT count(*) AS n, sum(v) AS s FROM meters", "ask").to_pylist() == [
            {"n": 1000, "s": 499500}
        ]
        assert (
            link.query("SELECT _wstart, count(*) AS n FROM ask.meters INTERVAL(1s)").num_rows == 1
        )
        with pytest.raises(PenstockError, match="nothing"):
            link.query("SELECT nothing FROM ask.meters")
        with pytest.raises(CatalogError):
            link.describe("none", "ask")
        assert link.query("SELECT v FROM ask.meters").num_rows == 1000, (
            "an error costs its channel only"
        )


def test_who_may_not_come_in(serving: RunningMesh) -> None:
    with pytest.raises(AuthError) as refused:
        Link(address_of(serving, password="wrong-secret"))
    assert "wrong-secret" not in str(refused.value)
    with pytest.raises(LinkLost):
        Link(address_of(serving, port=1))
    with pytest.raises(LinkLost):  # TLS to a plain port is an error, not a hang
        Link(address_of(serving, secure=True), timeout=5)


def test_a_subscription_continues_exactly_behind_its_token(serving: RunningMesh) -> None:
    with client_of(serving) as client:
        client.execute("CREATE DATABASE sub PARTITIONS 3")
        client.execute(METERS, database="sub")
        client.write("sub.meters", rows(0, 500))
        with link_to(serving) as link:
            channel = link.subscribe(
                "SELECT v, v * 2 AS twice, site FROM meters WHERE v >= 100",
                "sub",
                start="earliest",
                positions=True,
            )
            token = channel.expect("subscribed", 10).header["token"]
            seen: list[int] = []
            while len(seen) < 200:
                message = channel.get(10)
                assert message is not None
                if message.rows is not None:
                    seen += message.rows.column("v").to_pylist()
                token = message.header.get("token", token)
        pid = serving.kill("federation")
        client.write("sub.meters", rows(500, 500))
        serving.wait_ready("federation", not_pid=pid)
        with link_to(serving) as link:
            channel = link.subscribe(
                "SELECT v, v * 2 AS twice, site FROM meters WHERE v >= 100", "sub", start=token
            )
            channel.expect("subscribed", 10)
            rest = _gather(channel, 900 - len(seen))
        assert sorted(seen + rest["v"].to_list()) == list(range(100, 1000))
        assert (rest["twice"] == rest["v"] * 2).all()


def test_deletes_and_added_columns_come_in_their_place(serving: RunningMesh) -> None:
    with client_of(serving) as client, link_to(serving) as link:
        client.execute("CREATE DATABASE alt PARTITIONS 1")
        client.execute("CREATE TABLE alt.t (ts TIMESTAMP, v INT)")
        channel = link.subscribe("SELECT * FROM alt.t", start="earliest")
        channel.expect("subscribed", 10)
        client.execute(f"INSERT INTO alt.t VALUES ({T0}, 1)")
        client.execute(f"DELETE FROM alt.t WHERE ts <= {T0}")
        client.execute("ALTER TABLE alt.t ADD COLUMN w INT")
        client.execute(f"INSERT INTO alt.t VALUES ({T0 + 1}, 2, 3)")
        kinds: list[str] = []
        while kinds.count("rows") < 2:
            message = channel.get(10)
            assert message is not None
            if message.kind != "token":
                kinds.append(message.kind)
        assert [k for k in kinds if k != "schema"] == ["rows", "delete", "rows"]
        assert kinds.count("schema") == 1, (
            "before the first rows of the new definition, perhaps earlier"
        )
        assert message.rows.column("w").to_pylist() == [3]
        # rows that come right behind their definition wait for it, though this service reads both by
        # itself
        for n in range(40):
            client.execute(f"ALTER TABLE alt.t ADD COLUMN c{n} INT")
            client.execute(f"INSERT INTO alt.t (ts, v, c{n}) VALUES ({T0 + 2 + n}, {n}, {n})")
        came = _gather(channel, 40)
        assert came["v"].to_list() == list(range(40))
        assert [came[f"c{n}"][n] for n in range(40)] == list(range(40))


def _rows_of(first: int, count: int) -> pa.Table:
    return pa.table(
        {
            "_offset": pa.array([i // 10 for i in range(first, first + count)], pa.int64()),
            "_row": pa.array([i % 10 for i in range(first, first + count)], pa.int64()),
            "tbname": [f"m{i % 7}" for i in range(first, first + count)],
            "ts": pa.array(
                [T0 + i for i in range(first, first + count)], pa.timestamp("ms", "UTC")
            ),
            "v": pa.array(range(first, first + count), pa.int32()),
            "site": pa.array([i % 7 for i in range(first, first + count)], pa.int32()),
        }
    )


def test_appends_count_once_over_kills(serving: RunningMesh) -> None:
    with client_of(serving) as client:
        client.execute("CREATE DATABASE app PARTITIONS 4")
        client.execute(METERS, database="app")
        for attempt in range(3):
            with link_to(serving) as link:
                channel = link.append("meters", "app", producer="f:test:0")
                channel.expect("opened", 30)
                for seq, first in enumerate(
                    range(0, 1000 * (attempt + 1), 100)
                ):  # from the beginning, again and again
                    channel.send({"seq": seq}, _rows_of(first, 100))
                if attempt < 2:
                    channel.expect("ack", 10)
                    pid = serving.kill("federation")
                    serving.wait_ready("federation", not_pid=pid)
                    continue
                for _ in range(30):
                    channel.expect("ack", 30)
        with link_to(serving) as link:
            subscription = link.subscribe(
                "SELECT v FROM app.meters", start="earliest", positions=True
            )
            subscription.expect("subscribed", 10)
            found = _gather(subscription, 3000)
            # over a link a question sees all that was acked, whoever wrote it; the gateway promises
            # only what it acked itself
            answer = link.query("SELECT count(*) AS n, sum(v) AS s FROM app.meters").to_pylist()
        assert answer == [{"n": 3000, "s": sum(range(3000))}]
        assert sorted(found["v"].to_list()) == list(range(3000)), "each once, in the log itself"
        per_table = found.sort("_offset", "_row").group_by("tbname", maintain_order=True).agg("v")
        assert all(values == sorted(values) for values in per_table["v"].to_list())


def test_a_channel_that_ends_before_its_acks_stops_nobody(serving: RunningMesh) -> None:
    with client_of(serving) as client, link_to(serving) as link:
        client.execute("CREATE DATABASE hasty PARTITIONS 2")
        client.execute(METERS, database="hasty")
        for number in range(20):
            channel = link.append("meters", "hasty", producer=f"f:hasty:{number}")
            channel.expect("opened", 30)
            for seq, first in enumerate(range(0, 2000, 100)):
                channel.send({"seq": seq}, _rows_of(first, 100))
            channel.expect("ack", 30)
            channel.close()
        channel = link.append("meters", "hasty")
        channel.expect("opened", 30)
        channel.send({"seq": 0}, _rows_of(0, 2000).drop(["_offset", "_row"]))
        channel.expect("ack", 30)
        assert link.query("SELECT count(*) AS n FROM hasty.meters").to_pylist() == [{"n": 2000}]


def test_rows_that_do_not_fit_are_refused_whole(serving: RunningMesh) -> None:
    with client_of(serving) as client, link_to(serving) as link:
        client.execute("CREATE DATABASE bad PARTITIONS 1")
        client.execute("CREATE TABLE bad.t (ts TIMESTAMP, note VARCHAR(3))")
        times = pa.array([T0, T0 + 1], pa.timestamp("ms", "UTC"))
        with pytest.raises(SchemaError, match="longer"):
            link.write("t", "bad", pa.table({"ts": times, "note": ["ok", "too long"]}))
        with pytest.raises(SchemaError, match="no column"):
            link.write("t", "bad", pa.table({"ts": times, "other": [1, 2]}))
        assert link.write("t", "bad", pa.table({"ts": times, "note": ["a", "b"]})) == 2
        assert link.query("SELECT count(*) AS n FROM bad.t").to_pylist() == [{"n": 2}], (
            "read after write"
        )


def test_the_beginning_is_there_after_the_log_was_shortened(serving: RunningMesh) -> None:
    from penstock.bus import Admin

    with client_of(serving) as client:
        client.execute("CREATE DATABASE old PARTITIONS 2")
        client.execute(METERS, database="old")
        client.write("old.meters", rows(0, 400))
        admin = Admin(serving.kafka_bootstrap)
        where = [("in.old", p) for p in range(2)]
        segments = serving.layout.root / "segments"
        eventually(lambda: len(list(segments.glob("positions/in.old-*"))) == 2)
        admin.delete_records(admin.end_offsets(where))
        client.write("old.meters", rows(400, 100))
        with link_to(serving) as link:
            channel = link.subscribe("SELECT v FROM old.meters", start="earliest")
            channel.expect("subscribed", 10)
            assert sorted(_gather(channel, 500)["v"].to_list()) == list(range(500))


def test_any_flight_client_reads_with_a_password(serving: RunningMesh) -> None:
    import base64

    import pyarrow.flight as flight

    with client_of(serving) as client:
        client.execute("CREATE DATABASE plain PARTITIONS 1")
        client.execute("CREATE TABLE plain.t (ts TIMESTAMP, v INT)")
        client.execute(f"INSERT INTO plain.t VALUES ({T0}, 7)")
        assert client.query("SELECT v FROM plain.t").rows == [(7,)]
    reader = flight.FlightClient(serving.store_url)
    ticket = flight.Ticket(b"SELECT v FROM plain.t")
    basic = b"Basic " + base64.b64encode(f"{serving.user}:{serving.password}".encode())
    found = reader.do_get(
        ticket, flight.FlightCallOptions(headers=[(b"authorization", basic)])
    ).read_all()
    assert found.to_pylist() == [{"v": 7}]
    for header in (b"Basic " + base64.b64encode(b"root:wrong"), b""):
        with pytest.raises(flight.FlightUnauthenticatedError):
            reader.do_get(
                ticket, flight.FlightCallOptions(headers=[(b"authorization", header)])
            ).read_all()
    with pytest.raises(flight.FlightUnauthenticatedError):
        reader.do_get(ticket).read_all()


def test_drivers_of_flight_sql_read_tables(serving: RunningMesh) -> None:
    import adbc_driver_flightsql.dbapi as flight_sql
    from adbc_driver_manager import OperationalError, ProgrammingError

    with client_of(serving) as client:
        client.execute("CREATE DATABASE adbc PARTITIONS 2")
        client.execute(METERS, database="adbc")
        client.write("adbc.meters", rows(0, 1000))
        assert client.query("SELECT count(*) FROM adbc.meters").rows == [(1000,)]
    who = {"username": serving.user, "password": serving.password}
    with flight_sql.connect(serving.store_url, who, autocommit=True) as connection:
        found = pl.read_database(
            "SELECT v, note, site FROM adbc.meters WHERE v < 500 ORDER BY v", connection
        )
        assert found["v"].to_list() == list(range(500)) and found["note"].dtype == pl.String
        with connection.cursor() as cursor:
            cursor.execute("SELECT v FROM adbc.meters WHERE v = ?", (7,))
            assert cursor.fetchall() == [(7,)]
        with (
            connection.cursor() as cursor,
            pytest.raises((ProgrammingError, OperationalError), match="E_TABLE_NOT_EXIST"),
        ):
            cursor.execute("SELECT * FROM adbc.nothing")
            cursor.fetchall()
    with pytest.raises((ProgrammingError, OperationalError), match="E_AUTH"):
        flight_sql.connect(serving.store_url, {**who, "password": "wrong"}, autocommit=True)


def test_a_user_reads_and_writes_what_was_granted(serving: RunningMesh) -> None:
    with client_of(serving) as client:
        client.execute("CREATE DATABASE mine PARTITIONS 1")
        client.execute("CREATE TABLE mine.open (ts TIMESTAMP, v INT)")
        client.execute("CREATE TABLE mine.closed (ts TIMESTAMP, v INT)")
        client.execute("CREATE USER reader PASS 'a good password'")
        client.execute("GRANT READ ON mine.open TO reader")
        rows_ = pa.table({"ts": pa.array([T0], pa.timestamp("ms", "UTC")), "v": [1]})
        with Link(address_of(serving, user="reader", password="a good password")) as link:
            assert link.query("SELECT count(*) AS n FROM mine.open").num_rows == 1
            assert link.describe("open", "mine").name == "open"
            for forbidden in (
                lambda: link.query("SELECT * FROM mine.open a JOIN mine.closed b ON a.ts = b.ts"),
                lambda: link.describe("closed", "mine"),
                lambda: link.subscribe("SELECT * FROM mine.closed").expect("subscribed", 10),
                lambda: link.write("open", "mine", rows_),
            ):
                with pytest.raises(AuthError, match="E_FORBIDDEN"):
                    forbidden()
            channel = link.subscribe("SELECT v FROM mine.open")
            channel.expect("subscribed", 10)
            client.execute("REVOKE READ ON mine.open FROM reader")
            with pytest.raises(AuthError, match="E_FORBIDDEN"):
                while True:
                    channel.get(10)


def test_T15_H15_another_version_of_the_link_is_refused_by_name(
    serving: RunningMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.link.handshake.VERSION", 99)
    with pytest.raises(PenstockError, match="E_LINK_VERSION"):
        link_to(serving)


def test_T15_H15_an_older_peer_answers_what_it_knows_and_refuses_the_rest_by_name(
    serving: RunningMesh,
) -> None:
    with client_of(serving) as client, link_to(serving) as link:
        client.execute("CREATE DATABASE older PARTITIONS 1")
        client.execute(METERS, database="older")
        request = {"op": "subscribe", "sql": "SELECT v FROM older.meters", "from": "earliest"}
        link.open({**request, "sparkle": False}).expect(
            "subscribed", 10
        )  # what is off is not asked for
        with pytest.raises(PenstockError, match="subscribe has no parameter sparkle"):
            link.open({**request, "sparkle": True}).get(10)
        assert link.query("SELECT count(*) AS n FROM older.meters").to_pylist() == [{"n": 0}]


def test_a_slow_reader_waits_for_itself_alone(serving: RunningMesh) -> None:
    with client_of(serving) as client, link_to(serving) as link:
        client.execute("CREATE DATABASE brake PARTITIONS 1")
        client.execute(METERS, database="brake")
        slow = link.subscribe("SELECT * FROM brake.meters", start="earliest")
        slow.expect("subscribed", 10)
        for first in range(0, 4000, 100):  # forty messages, more than a channel's credit
            client.write("brake.meters", rows(first, 100))
        quick = link.subscribe("SELECT v FROM brake.meters", start="earliest")
        quick.expect("subscribed", 10)
        assert sorted(_gather(quick, 4000)["v"].to_list()) == list(range(4000)), (
            "the same link, while the other channel is not read"
        )
        assert slow._inbox.qsize() <= 20, "nothing piles up beyond the credit"
        assert sorted(_gather(slow, 4000)["v"].to_list()) == list(range(4000))


def test_what_was_made_just_now_is_known_here_and_in_the_store(serving: RunningMesh) -> None:
    with client_of(serving) as client, link_to(serving) as link:
        client.execute("CREATE DATABASE fresh PARTITIONS 1")
        for i in range(40):
            client.execute(f"CREATE TABLE fresh.t{i} (ts TIMESTAMP, v INT)")
            assert link.query(f"SELECT v FROM fresh.t{i}").num_rows == 0
            client.execute(f"CREATE TABLE fresh.u{i} (ts TIMESTAMP, v INT)")
            if i % 3 == 0:
                assert link.describe(f"u{i}", "fresh").name == f"u{i}"
            elif i % 3 == 1:
                link.subscribe(f"SELECT v FROM fresh.u{i}").expect("subscribed", 10)
            else:
                link.append(f"u{i}", "fresh").expect("opened", 10)


def test_what_was_granted_just_now_is_known_too(serving: RunningMesh) -> None:
    with client_of(serving) as client:
        client.execute("CREATE DATABASE given PARTITIONS 1")
        client.execute("CREATE USER guest PASS 'a good password'")
        client.execute("CREATE TABLE given.first (ts TIMESTAMP, v INT)")
        client.execute("GRANT READ ON given.first TO guest")
        with Link(address_of(serving, user="guest", password="a good password")) as link:
            for i in range(20):
                client.execute(f"CREATE TABLE given.t{i} (ts TIMESTAMP, v INT)")
                client.execute(f"GRANT READ ON given.t{i} TO guest")
                if i % 2:
                    assert link.describe(f"t{i}", "given").name == f"t{i}"
                else:
                    link.subscribe(f"SELECT v FROM given.t{i}").expect("subscribed", 10)
            with pytest.raises(AuthError, match="E_FORBIDDEN"):
                link.describe("nothing", "given")


def test_tables_without_a_log_are_read_and_not_followed(serving: RunningMesh) -> None:
    with client_of(serving) as client, link_to(serving) as link:
        client.execute("CREATE DATABASE nolog PARTITIONS 1")
        client.execute("CREATE TABLE nolog.t (ts TIMESTAMP, v INT)")
        client.execute(f"INSERT INTO nolog.t VALUES ({T0}, 7)")
        client.execute("CREATE VTABLE nolog.vt (ts TIMESTAMP, v INT FROM nolog.t.v)")
        assert link.query("SELECT v FROM nolog.vt").to_pylist() == [{"v": 7}]
        for refused in (
            lambda: link.subscribe("SELECT * FROM nolog.vt").expect("subscribed", 10),
            lambda: link.append("vt", "nolog").expect("opened", 10),
        ):
            with pytest.raises(PenstockError, match="E_NO_LOG"):
                refused()
        with pytest.raises(PenstockError, match="E_NO_LOG"):
            client.execute("CREATE MATERIALIZED VIEW nolog.mv AS SELECT * FROM nolog.vt")

"""Stream tables of a raft group seen from another deployment: followed, written and pumped over the
link while their leader dies.
"""

from __future__ import annotations

import threading

import pytest

from penstock.errors import PenstockError
from tests.stack.conftest import MeshFactory, eventually
from tests.stack.federation_kit import (
    ENVIRONMENT,
    SELF,
    T0,
    clause,
    client_of,
    link_to,
    settings_of,
)
from tests.stack.test_ha_tables import TRADES, rows

SERVICES = ("kafka", "redis", "gateway", "store", "federation")


@pytest.mark.long
def test_a_stream_table_is_followed_over_a_link_while_its_leader_dies(
    own_mesh: MeshFactory,
) -> None:
    mesh = own_mesh(services=SERVICES, nodes=3, environment={**ENVIRONMENT, **SELF})
    with client_of(mesh) as client, link_to(mesh) as link:
        client.execute("CREATE DATABASE ha")
        client.database = "ha"
        table = client.ha.create(11, TRADES, "trades", 1000)
        table.append(rows(0, 1))
        client.execute(f"CREATE EXTERNAL STREAM ha.far {clause(settings_of(mesh, 'ha.trades'))}")
        client.execute(
            "CREATE MATERIALIZED VIEW ha.copy AS SELECT * FROM ha.far WHERE _tp_time > earliest_ts()"
        )
        followed = link.subscribe(
            "SELECT row_id, qty FROM ha.trades", start="earliest", positions=True
        )
        followed.expect("subscribed", 30)
        got: list[tuple[int, int]] = []

        def read(until: int) -> None:
            while len(got) < until:
                message = followed.get(30)
                assert message is not None, f"{len(got)} of {until} rows came"
                if message.rows is not None:
                    got.extend(
                        zip(
                            message.rows["row_id"].to_pylist(),
                            message.rows["qty"].to_pylist(),
                            strict=True,
                        )
                    )

        read(2)
        for turn in range(3):
            leader = client.ha.leader(11).lower()
            killed = mesh.kill(leader)
            table.append(rows(2 + 2 * turn, 3 + 2 * turn))  # waits for the next leader
            read(4 + 2 * turn)
            mesh.wait_ready(leader, not_pid=killed)  # two dead at once would be no majority
        assert got == [(i, i) for i in range(8)], "each row once and in order, whoever led"
        wanted = [(i,) for i in range(8)]
        eventually(lambda: client.query("SELECT qty FROM ha.copy ORDER BY qty").rows == wanted)
        assert client.query("SELECT sum(qty) FROM ha.far").rows == [(sum(range(8)),)]
        with pytest.raises(PenstockError, match="E_TARGET_COLUMNS.* has no column row_id"):
            client.execute(
                "CREATE MATERIALIZED VIEW ha.back INTO ha.trades AS SELECT * FROM ha.far"
            )


@pytest.mark.long
def test_a_stream_table_is_written_over_a_link_while_leaders_and_links_die(
    own_mesh: MeshFactory,
) -> None:
    """INSERT into it and a view into it at once: every row that was acked is there once, those of
    the view in order.
    """
    mesh = own_mesh(services=SERVICES, nodes=3, environment={**ENVIRONMENT, **SELF})
    with client_of(mesh) as client:
        client.execute("CREATE DATABASE ha")
        client.database = "ha"
        client.ha.create(11, TRADES, "trades", 100_000)
        client.execute(f"CREATE EXTERNAL STREAM ha.far {clause(settings_of(mesh, 'ha.trades'))}")
        client.execute(
            "CREATE TABLE ha.source (timestamp TIMESTAMP, sym VARCHAR(8), qty INT, price DOUBLE)"
        )
        client.execute(
            "CREATE MATERIALIZED VIEW ha.feed INTO ha.far AS SELECT timestamp, sym, qty FROM ha.source WHERE qty >= 0"
        )
        ended = threading.Event()
        pumped: list[int] = []
        inserted: list[int] = []
        failed: list[BaseException] = []

        def insert() -> None:
            try:
                with client_of(mesh) as other:
                    while not ended.is_set():
                        number = 1_000_000 + len(inserted)
                        assert (
                            other.execute(
                                f"INSERT INTO ha.far (timestamp, sym, qty) VALUES ({T0 + number}, 'I', {number})"
                            )
                            == 1
                        )
                        inserted.append(number)
            except BaseException as error:
                failed.append(error)

        def pump() -> None:
            try:
                with client_of(mesh) as other:
                    while not ended.is_set():
                        numbers = range(len(pumped), len(pumped) + 50)
                        other.write(
                            "ha.source",
                            [
                                {"timestamp": T0 + n, "sym": "P", "qty": n, "price": 1.5}
                                for n in numbers
                            ],
                        )
                        pumped.extend(numbers)
            except BaseException as error:
                failed.append(error)

        def moved() -> None:
            """Rows go on coming in both ways."""
            one = count("I")
            other = count("P")
            eventually(lambda: failed or (count("I") > one and count("P") > other), 60)

        def count(sym: str) -> int:
            return int(
                client.query(f"SELECT count(*) FROM ha.trades WHERE sym = '{sym}'").rows[0][0]
            )

        writers = [threading.Thread(target=insert), threading.Thread(target=pump)]
        for writer in writers:
            writer.start()
        try:
            moved()
            for service in ("leader", "federation", "leader", "federation"):
                mesh.kill(client.ha.leader(11).lower() if service == "leader" else service)
                moved()
        finally:
            ended.set()
            for writer in writers:
                writer.join(120)
        assert not failed, failed
        eventually(lambda: count("P") >= len(pumped), 60)
        got = client.query("SELECT sym, qty, price FROM ha.trades ORDER BY row_id").rows
        assert [qty for sym, qty, _ in got if sym == "P"] == pumped, (
            "each once and in order, whatever died"
        )
        assert [qty for sym, qty, _ in got if sym == "I"] == inserted, (
            "no row that was acked is missing or there twice"
        )
        assert {price for _, _, price in got} == {None}, "what is not selected is NULL"
        shown = client.query("SHOW VIEWS LIKE 'feed'")
        assert dict(zip(shown.columns, shown.rows[0], strict=True))["status"] == "running"

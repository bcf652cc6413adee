"""Stream tables of a raft group seen from another deployment: followed over the link, pumped by views, while their leader dies."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from tests.stack.conftest import MeshFactory, eventually
from tests.stack.federation_kit import ENVIRONMENT, clause, client_of, link_to, settings_of
from tests.stack.test_ha_tables import TRADES, rows

ROOMS = ("kafka", "redis", "gateway", "store", "federation")


def test_a_stream_table_is_followed_over_a_link_while_its_leader_dies(own_mesh: MeshFactory) -> None:
    mesh = own_mesh(rooms=ROOMS, nodes=3, environment=ENVIRONMENT)
    with client_of(mesh) as client, link_to(mesh) as link:
        client.execute("CREATE DATABASE ha")
        client.database = "ha"
        table = client.haStreamTable(11, TRADES, "trades", 1000)
        table.append(rows(0, 1))
        client.execute(f"CREATE EXTERNAL STREAM ha.far {clause(settings_of(mesh, 'ha.trades'))}")
        client.execute("CREATE MATERIALIZED VIEW ha.copy AS SELECT * FROM ha.far WHERE _tp_time > earliest_ts()")
        followed = link.subscribe("SELECT row_id, qty FROM ha.trades", start="earliest", positions=True)
        followed.expect("subscribed", 30)
        got: list[tuple[int, int]] = []

        def read(until: int) -> None:
            while len(got) < until:
                message = followed.get(30)
                assert message is not None, f"{len(got)} of {until} rows came"
                if message.rows is not None:
                    got.extend(zip(message.rows["row_id"].to_pylist(), message.rows["qty"].to_pylist(), strict=True))

        read(2)
        for turn in range(3):
            mesh.kill(client.getStreamingLeader(11).lower())
            table.append(rows(2 + 2 * turn, 3 + 2 * turn))  # waits for the next leader
            read(4 + 2 * turn)
        assert got == [(i, i) for i in range(8)], "each row once and in order, whoever led"
        wanted = [(i,) for i in range(8)]
        eventually(lambda: client.query("SELECT qty FROM ha.copy ORDER BY qty").rows == wanted)
        assert client.query("SELECT sum(qty) FROM ha.far").rows == [(sum(range(8)),)]
        with pytest.raises(PenstockError, match="E_NO_LOG"):
            link.append("trades", "ha").expect("opened", 10)
        with pytest.raises(PenstockError, match="E_NO_LOG"):
            client.execute("CREATE MATERIALIZED VIEW ha.back INTO ha.trades AS SELECT * FROM ha.far")

"""Tables as requests ask for them: who may see which, and who leads each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PenstockError
from tests.unit.services.tables.kit import Log, Node, stream_table
from tests.unit.services.tables.served_node import ROOT, ServedNode


@pytest.fixture
async def served(tmp_path: Path) -> ServedNode:
    table = stream_table()
    return ServedNode(Node("N1", table, Log(table.topic), tmp_path, asyncio.get_running_loop()))


def refusal(call: Callable[[], Any]) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        call()
    return wrong.value


async def test_a_table_is_found_by_its_name(served: ServedNode) -> None:
    served.allow("ann", "READ")
    replica = served.nodes[0].replica
    assert served.lookup.by_name("ann", "READ", "ha.trades") is replica
    assert served.lookup.replica("ha", "trades") is replica
    error = refusal(lambda: served.lookup.by_name("ann", "READ", "trades"))
    assert (error.code, error.message) == ("E_BODY", "a table is database.name")


async def test_who_has_no_right_is_not_told_what_exists(served: ServedNode) -> None:
    served.allow("ann", "READ")
    bob = served.allow("bob")
    assert refusal(lambda: served.lookup.by_name("ann", "WRITE", "ha.trades")).code == "E_FORBIDDEN"
    there = refusal(lambda: served.lookup.by_name(bob, "READ", "ha.trades"))
    nowhere = refusal(lambda: served.lookup.by_name(bob, "READ", "ha.no"))
    assert there.code == nowhere.code == "E_FORBIDDEN"
    assert there.message.replace("trades", "no") == nowhere.message


async def test_tables_that_are_elsewhere_of_another_kind_or_nowhere(served: ServedNode) -> None:
    served.add_plain_table("plain")
    elsewhere = stream_table()
    served.nodes = ()
    served.catalog.put(elsewhere)
    gone = refusal(lambda: served.lookup.replica("ha", "trades"))
    assert gone.code == "E_NO_TABLE" and "node N1 has no copy" in gone.message
    assert gone.detail == "its group is 11"
    plain = refusal(lambda: served.lookup.by_name(ROOT, "READ", "ha.plain"))
    assert plain.code == "E_NO_TABLE" and "is no stream table" in plain.message
    nowhere = refusal(lambda: served.lookup.by_name(ROOT, "READ", "ha.no"))
    assert nowhere.code == "E_NO_TABLE" and "does not exist" in nowhere.message


async def test_a_session_is_there_only_where_the_table_is_led(served: ServedNode) -> None:
    replica = served.nodes[0].replica
    served.standing.alive = ("N1",)
    error = refusal(lambda: served.lookup.session(replica))
    assert error.code == "E_NOT_LEADER" and "no quorum" in error.detail
    served.standing.alive = ("N1", "N2")
    assert "nobody leads" in refusal(lambda: served.lookup.session(replica)).detail
    served.lead_elsewhere()
    assert refusal(lambda: served.lookup.session(replica)).detail == "N2 leads"
    assert served.lookup.session_of(replica) is None
    served.lead_here(epoch=3)
    assert served.lookup.session(replica) is served.nodes[0].session
    assert served.lookup.leader(replica) == {"node": "N1", "url": "http://n1", "epoch": 3}

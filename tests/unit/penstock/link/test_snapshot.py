"""Reading a remote table as of one place of its log, and subscribing behind it."""

from __future__ import annotations

import pytest

from penstock.errors import RemoteError
from penstock.feeds.cursor import Cursor
from penstock.link import snapshot as module
from penstock.link.address import LinkLost
from penstock.link.remote_request import MirrorOptions, RemoteRequest, TimeLeft
from penstock.link.snapshot import find, read_snapshot, snapshot, subscribe
from tests.unit.penstock.link.far_side import ADDRESS, READINGS, TARGET, FarLink, FarSide, rows

ALL = RemoteRequest(MirrorOptions())


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch) -> FarSide:
    made = FarSide()
    monkeypatch.setattr(module, "connect_any", made.connect)
    return made


def link(side: FarSide) -> FarLink:
    return FarLink(side, ADDRESS)


def test_rows_of_this_moment_have_the_columns_that_were_asked_for(side: FarSide) -> None:
    side.pieces = [rows(("a", 1, 10)).select(["v"]), rows(("a", 2, None)).select(["v"])]
    found = snapshot(TARGET, MirrorOptions(columns=("v",), where="v > 1"))
    assert found.to_pydict() == {"v": [10, None]}
    assert side.link.of("resolve") == [("t", "q", None)]
    assert side.link.of("query") == [("SELECT `v` FROM `d`.`t` WHERE v > 1", "d")]
    assert side.link.closed


def test_nobody_there_is_an_error_and_so_is_time_that_is_over(side: FarSide) -> None:
    side.errors["connect"] = LinkLost("down")
    with pytest.raises(LinkLost):
        snapshot(TARGET, MirrorOptions())
    with pytest.raises(RemoteError) as late:
        snapshot(TARGET, MirrorOptions(wait_timeout_ms=0))
    assert late.value.code == "E_TIMEOUT"
    assert "E_LINK_LOST: down" in late.value.detail


def test_a_column_that_is_not_there_is_refused_and_the_link_closed(side: FarSide) -> None:
    with pytest.raises(RemoteError) as caught:
        snapshot(TARGET, MirrorOptions(columns=("nosuch",)))
    assert caught.value.code == "E_NO_COLUMN"
    assert side.link.closed


def test_the_first_rows_come_with_the_place_that_they_go_up_to(side: FarSide) -> None:
    side.pieces = [rows(("a", 1, 10)), rows(("b", 2, 20), ("b", 3, 30))]
    side.positions = {"in.d:0": 5, "in.d:3": 7}
    made = link(side)
    frames, cursor = read_snapshot(made, ALL, READINGS, TimeLeft())  # type: ignore[arg-type]
    assert [frame.height for frame in frames] == [1, 2]
    assert cursor.token() == Cursor({0: 5, 3: 7}).token()
    ((sql, database),) = made.of("query")
    assert sql.startswith("SELECT tbname, `ts`, `v`, `site` FROM (SELECT tbname, ")
    assert database == "d"


def test_a_result_without_a_place_begins_at_none(side: FarSide) -> None:
    side.positions = {}
    _, cursor = read_snapshot(link(side), ALL, READINGS, TimeLeft())  # type: ignore[arg-type]
    assert cursor.token() == Cursor({}).token()


def test_a_subscription_begins_behind_the_token(side: FarSide) -> None:
    made = link(side)
    request = RemoteRequest(MirrorOptions(blink=True))
    channel = subscribe(made, TARGET, request, READINGS, "7.x", TimeLeft())  # type: ignore[arg-type]
    assert channel is made.channels[0]
    assert made.of("subscribe") == [
        {
            "sql": "SELECT `ts`, `v`, `site` FROM `d`.`t`",
            "database": "d",
            "start": "7.x",
            "cycles": True,
            "query": "q",
            "serial": None,
        }
    ]


def test_a_subscription_that_is_refused_raises(side: FarSide) -> None:
    side.errors["subscribe"] = RemoteError("no", code="E_TOKEN")
    with pytest.raises(RemoteError, match="no"):
        subscribe(link(side), TARGET, ALL, READINGS, "x", TimeLeft())  # type: ignore[arg-type]


def test_a_table_is_found_by_name_and_query(side: FarSide) -> None:
    made = link(side)
    assert find(made, TARGET, TimeLeft()) == READINGS  # type: ignore[arg-type]
    assert made.of("resolve") == [("t", "q", None)]

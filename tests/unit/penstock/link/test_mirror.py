"""`RemoteTable` over a link in memory: rows, cuts, what is shown meanwhile, and how it ends."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import PenstockError, RemoteError
from penstock.feeds.cursor import TokenError
from penstock.link import mirror, retry_window
from penstock.link.address import LinkLost
from penstock.link.description import Description
from penstock.link.mirror import RemoteTable
from penstock.link.remote_request import MirrorOptions
from penstock.link.updates import TableUpdate
from tests.unit.penstock.link.far_side import READINGS, TARGET, FarLink, FarSide, rows
from tests.unit.penstock.notebook.played import PlayedNotebook

FOREVER = 10**9


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch) -> FarSide:
    made = FarSide()
    monkeypatch.setattr(mirror, "connect_any", made.connect)
    return made


class Open:
    """Tables that are closed with the test."""

    def __init__(self) -> None:
        self.tables: list[RemoteTable] = []

    def __call__(
        self, definition: Description | None = None, start: bool = True, **options: Any
    ) -> RemoteTable:
        given = {"retry_window_ms": FOREVER, **options}
        made = RemoteTable(TARGET, MirrorOptions(**given), definition)
        self.tables.append(made)
        return made.start() if start else made


@pytest.fixture
def opened() -> Iterator[Open]:
    made = Open()
    yield made
    for table in made.tables:
        table.close()


def values(table: RemoteTable) -> list[tuple[int, int]]:
    """Time and value of the rows, in order."""
    shown = table.to_polars()
    ticks = shown.get_column("ts").dt.epoch("ms").to_list()
    return sorted(zip(ticks, shown.get_column("v").to_list(), strict=True))


def kinds(updates: list[TableUpdate]) -> list[str]:
    return [update.kind for update in updates]


def watch(side: FarSide, table: RemoteTable) -> Iterator[TableUpdate]:
    """Updates of *table*, watched from before this returns; the first ones are of one row."""
    updates = table.updates(timeout=10)
    watching = threading.Event()

    def send() -> None:
        while not watching.wait(0.001):
            side.send(rows(("a", 1, 10)), type="rows")

    thread = threading.Thread(target=send)
    thread.start()
    assert next(updates).kind == "rows"
    watching.set()
    thread.join()
    return updates


def test_it_begins_with_the_rows_of_one_place_and_follows_behind_it(
    side: FarSide, opened: Open
) -> None:
    side.pieces = [rows(("a", 1, 10)), rows(("b", 2, 20))]
    table = opened()
    assert table.state == "live" and not table.stale and table.error is None
    assert values(table) == [(1, 10), (2, 20)]
    (asked,) = side.link.of("subscribe")
    assert asked["start"].startswith("7.") and asked["query"] == "q"
    side.send(rows(("a", 3, 30)), type="rows", token="7.x")
    table.wait(lambda t: len(t) == 3)
    assert values(table) == [(1, 10), (2, 20), (3, 30)]
    assert table.updated_at > 0 and table.reconnects == 0


def test_rows_replace_go_and_change_their_tags(side: FarSide, opened: Open) -> None:
    side.pieces = [rows(("a", 1, 10), ("a", 2, 20), ("b", 3, 30))]
    table = opened()
    seen: list[TableUpdate] = []
    table.on_update(seen.append)
    side.send(rows(("a", 1, 11)), type="rows")
    side.send(rows(("a", 2, 0), op=1), type="rows")
    table.wait(lambda t: values(t) == [(1, 11), (3, 30)])
    side.send(type="tags", tables=["b"], tags='{"site": 5}')
    table.wait(lambda t: 5 in t.to_polars()["site"].to_list())
    side.send(type="delete", low=0, high=1, tables=["a"])
    table.wait(lambda t: values(t) == [(3, 30)])
    table.wait(lambda t: len(seen) == 4)
    assert kinds(seen) == ["rows", "rows", "delete", "delete"]


def test_a_column_that_is_added_over_there_is_shown(side: FarSide, opened: Open) -> None:
    side.pieces = [rows(("a", 1, 10))]
    table = opened()
    wider = READINGS.to_json()
    wider["columns"] = [*wider["columns"], {"name": "w", "type": {"kind": "INT"}}]
    side.send(type="schema", table=wider)
    table.wait(lambda t: t.columns == ["ts", "v", "w", "site"])
    assert table.to_polars()["w"].to_list() == [None]


def test_a_cut_hides_rows_until_the_link_is_back(side: FarSide, opened: Open) -> None:
    side.pieces = [rows(("a", 1, 10))]
    table = opened()
    seen: list[TableUpdate] = []
    table.on_update(seen.append)
    side.send(rows(("a", 2, 20)), type="rows", token="7.behind")
    table.wait(lambda t: len(t) == 2)
    side.errors["connect"] = LinkLost("down")
    side.cut()
    table.wait(lambda t: t.state == "disconnected")
    assert len(table) == 0 and table.stale
    assert table.status["error"]["code"] == "E_LINK_LOST"
    assert table.schema.names == ["ts", "v", "site"]
    del side.errors["connect"]
    table.wait(lambda t: t.state == "live")
    assert values(table) == [(1, 10), (2, 20)]
    assert (table.reconnects, table.error) == (1, None)
    assert side.link.of("query") == []
    assert side.link.of("subscribe")[0]["start"] == "7.behind"
    table.wait(lambda t: "restored" in kinds(seen))
    assert kinds(seen) == ["rows", "clear", "restored"]


def test_rows_may_be_retained_over_a_cut(side: FarSide, opened: Open) -> None:
    side.pieces = [rows(("a", 1, 10))]
    table = opened(on_disconnect="retain")
    side.errors["connect"] = LinkLost("down")
    side.cut()
    table.wait(lambda t: t.state == "disconnected")
    assert values(table) == [(1, 10)]


def test_a_table_that_was_made_again_is_read_anew(side: FarSide, opened: Open) -> None:
    side.pieces = [rows(("a", 1, 10))]
    table = opened()
    side.description = Description(8, "d", "t", READINGS.columns, READINGS.tags)
    side.pieces = [rows(("a", 9, 90))]
    side.cut()
    table.wait(lambda t: t.reconnects == 1 and t.state == "live")
    assert values(table) == [(9, 90)]
    assert side.link.of("subscribe")[0]["start"].startswith("8.")


def test_a_token_that_is_too_old_means_reading_anew(
    side: FarSide, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    side.pieces = [rows(("a", 1, 10))]
    table = opened()
    side.pieces = [rows(("a", 2, 20))]

    def connect(*given: Any, **more: Any) -> FarLink:
        """Only the first subscription on the next link is refused."""
        link = side.connect(*given, **more)
        side.errors["subscribe"] = TokenError("too old")
        query = link.stream_query

        def forgiven(*about: Any, **options: Any) -> Iterator[pa.Table]:
            del side.errors["subscribe"]
            return query(*about, **options)

        link.stream_query = forgiven  # type: ignore[method-assign]
        return link

    monkeypatch.setattr(mirror, "connect_any", connect)
    side.cut()
    table.wait(lambda t: t.reconnects == 1 and t.state == "live")
    assert values(table) == [(2, 20)]


def test_a_link_that_stays_away_fails_the_table(side: FarSide, opened: Open) -> None:
    side.pieces = [rows(("a", 1, 10))]
    table = opened(max_retries=1)
    watched = watch(side, table)
    side.errors["connect"] = LinkLost("down")
    side.cut()
    with pytest.raises(RemoteError) as failed:
        list(watched)
    assert failed.value.code == "E_RETRY_WINDOW"
    table.wait(lambda t: t.state == "failed")
    with pytest.raises(RemoteError, match="could not be reached again"):
        table.to_arrow()
    assert table.error is not None and "E_LINK_LOST" in table.error.detail
    table.close()
    assert table.state == "closed"


class Clock:
    """Seconds of a retry window as a test says them."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_the_retry_window_counts_from_the_cut_however_long_it_was_live(
    side: FarSide, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(retry_window, "time", clock)
    side.pieces = [rows(("a", 1, 10))]
    table = opened(retry_window_ms=1_000)
    side.send(rows(("a", 2, 20)), type="rows")
    table.wait(lambda t: len(t) == 2)
    clock.now += 60
    side.cut()
    table.wait(lambda t: t.reconnects == 1 and t.state == "live")
    side.errors["connect"] = LinkLost("down")
    side.cut()
    table.wait(lambda t: t.attempts > 0)
    clock.now += 2
    table.wait(lambda t: t.state == "failed")


def test_no_window_means_no_retry(side: FarSide, opened: Open) -> None:
    table = opened(retry_window_ms=0)
    side.cut()
    table.wait(lambda t: t.state == "failed")
    assert len(side.links) == 1


def test_a_start_without_anybody_there_is_refused(side: FarSide, opened: Open) -> None:
    side.errors["connect"] = LinkLost("down")
    with pytest.raises(LinkLost):
        opened()
    del side.errors["connect"]
    side.errors["resolve"] = RemoteError("no such table", code="E_NO_TABLE")
    with pytest.raises(RemoteError) as caught:
        opened()
    assert caught.value.code == "E_NO_TABLE"
    assert side.link.closed


def test_a_definition_lets_it_begin_without_anybody_there(side: FarSide, opened: Open) -> None:
    side.errors["connect"] = LinkLost("down")
    side.pieces = [rows(("a", 1, 10))]
    table = opened(READINGS)
    assert table.columns == ["ts", "v", "site"] and len(table) == 0
    del side.errors["connect"]
    table.wait(lambda t: t.state == "live")
    assert values(table) == [(1, 10)]


def test_a_blink_table_shows_the_newest_cycle_only(side: FarSide, opened: Open) -> None:
    table = opened(blink=True)
    (asked,) = side.link.of("subscribe")
    assert (asked["start"], asked["cycles"]) == ("latest", True)
    assert side.link.of("query") == [] and len(table) == 0
    seen: list[TableUpdate] = []
    table.on_update(seen.append)
    side.send(rows(("a", 1, 10), ("a", 2, 20), ("a", 3, 30)), type="rows", cycles=[1, 2])
    table.wait(lambda t: len(t) == 2)
    assert table.to_polars()["v"].to_list() == [20, 30]
    table.wait(lambda t: kinds(seen) == ["rows", "rows"])
    assert [u.rows.num_rows for u in seen if u.rows is not None] == [1, 2]


def test_a_cycle_without_rows_empties_a_blink_table(
    side: FarSide, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "CYCLE_SECONDS", 0.01)
    table = opened(blink=True)
    seen: list[TableUpdate] = []
    table.on_update(seen.append)
    side.send(rows(("a", 1, 10)), type="rows")
    table.wait(lambda t: "reset" in kinds(seen))
    assert kinds(seen) == ["rows", "reset"] and len(table) == 0


def test_what_is_no_blink_table_cannot_be_required_to_be_one(side: FarSide, opened: Open) -> None:
    with pytest.raises(RemoteError) as caught:
        opened(blink=True, blink_required=True)
    assert caught.value.code == "E_NOT_BLINK"
    assert side.links == []


def test_updates_end_with_the_table_or_when_nothing_comes(side: FarSide, opened: Open) -> None:
    table = opened()
    assert list(table.updates(timeout=0.001)) == []
    side.send(rows(("a", 1, 10)), type="rows")
    table.wait(lambda t: len(t) == 1)
    watched = watch(side, table)
    table.close()
    assert set(kinds(list(watched))) <= {"rows"}
    assert table.state == "closed" and values(table) == [(1, 10)]
    assert list(table.updates()) == []


def test_waiting_has_an_end(side: FarSide, opened: Open) -> None:
    table = opened()
    with pytest.raises(RemoteError) as caught:
        table.wait(lambda t: False, timeout=0.01)
    assert (caught.value.code, caught.value.detail) == ("E_TIMEOUT", "q/t is live")


def test_a_fault_of_our_own_is_an_error_of_the_table(side: FarSide, opened: Open) -> None:
    table = opened(retry_window_ms=0)
    side.send(type="delete")
    table.wait(lambda t: t.state == "failed")
    assert table.error is not None and "E_INTERNAL" in table.error.detail


def test_rows_are_shown_in_several_forms(side: FarSide, opened: Open) -> None:
    side.pieces = [rows(("a", 1, 10), ("a", 2, 20))]
    table = opened(columns=("v",))
    assert table.columns == ["v"]
    assert table.sql("SELECT sum(v) AS n FROM t").to_pylist() == [{"n": 30}]
    assert len(table) == 2


def test_a_notebook_shows_its_state_and_the_newest_rows(
    side: FarSide, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = PlayedNotebook().install(monkeypatch)
    # in the order of names, as the other side has them: the newest is the first
    side.pieces = [rows(("a", 3, 30), ("b", 1, 10), ("b", 2, 20))]
    table = opened()
    later = threading.Timer(0.3, side.send, [rows(("a", 4, 40))], {"type": "rows"})
    later.start()
    table.display(1.0, rows=2)
    assert "live table q/t</b>: live, 3 rows" in notebook.drawn[0]
    assert re.findall(r"<td>(\d+)</td><td>0</td></tr>", notebook.drawn[0]) == ["20", "30"]
    assert "live, 4 rows, the last change at 20" in notebook.drawn[-1]
    assert re.findall(r"<td>(\d+)</td><td>0</td></tr>", notebook.drawn[-1]) == ["30", "40"]
    assert repr(table).startswith("<live table q/t: live, 4 rows, ")
    assert repr(table).endswith("columns ts, v, site>")
    table.close()
    assert ": closed, 4 rows" in repr(table)
    again = PlayedNotebook().install(monkeypatch)
    table.display()
    assert len(again.drawn) == 1


def test_a_display_of_a_table_that_has_failed_says_why(
    side: FarSide, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = PlayedNotebook().install(monkeypatch)
    side.errors["connect"] = LinkLost("down")
    table = opened(Description(0, "", "", READINGS.columns), retry_window_ms=0)
    table.wait(lambda t: t.state == "failed")
    with pytest.raises(RemoteError, match="reached again"):
        table.display()
    assert "failed (q/t could not be reached again)" in notebook.drawn[-1]


class Deployment:
    """A connection that only writes down what it is to execute."""

    def __init__(self) -> None:
        self.executed: list[str] = []

    def execute(self, sql: str, /) -> object:
        self.executed.append(sql)
        return None


def test_an_external_stream_is_made_of_it(side: FarSide, opened: Open) -> None:
    deployment = Deployment()
    opened().make_external(deployment, "far")
    (sql,) = deployment.executed
    assert sql.startswith("CREATE EXTERNAL STREAM far") and "'far:7707'" in sql


def test_a_filtered_or_unseen_table_makes_no_external_stream(side: FarSide, opened: Open) -> None:
    deployment = Deployment()
    with pytest.raises(RemoteError, match="no filter"):
        opened(where="v > 1").make_external(deployment, "far")
    unseen = Description(0, "", "", READINGS.columns)
    with pytest.raises(PenstockError, match="nobody has seen q/t yet"):
        opened(unseen, start=False).make_external(deployment, "far")
    assert deployment.executed == []

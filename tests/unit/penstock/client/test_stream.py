"""An unbounded SELECT: rows with tokens, over links that break."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.client import reconnecting
from penstock.client import stream as module
from penstock.client.stream import Stream, StreamRows
from penstock.errors import CatalogError, PenstockError
from penstock.link.address import Address, LinkLost

_ADDRESS = Address("127.0.0.1", 1, "u", "p")


def _table(*values: int) -> pa.Table:
    return pa.table({"a": list(values)})


def _message(token: str | None = None, *values: int) -> Any:
    header = {} if token is None else {"token": token}
    return SimpleNamespace(header=header, rows=_table(*values) if values else None)


class _Channel:
    """Gives out what a test has put in; an error is raised, None is a silence."""

    def __init__(self, token: str, messages: list[Any]) -> None:
        self._token = token
        self._messages = messages

    def expect(self, kind: str, seconds: float) -> Any:
        assert kind == "subscribed"
        return _message(self._token)

    def get(self, seconds: float) -> Any:
        if not self._messages:
            raise CatalogError("the script has ended")
        message = self._messages.pop(0)
        if isinstance(message, Exception):
            raise message
        return message


class _Node:
    """What a test makes of the other side: a list of connections, each one's messages."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *connections: Any) -> None:
        self.connections = list(connections)
        self.asked: list[tuple[Any, ...]] = []
        self.closed = 0
        self.now = 0.0
        node = self

        class Link:
            def __init__(self, address: Address) -> None:
                assert address is _ADDRESS

            def subscribe(self, sql: str, database: str, *, start: str, timezone: str) -> _Channel:
                node.asked.append((sql, database, start, timezone))
                found = node.connections.pop(0)
                if isinstance(found, Exception):
                    raise found
                return _Channel(f"s{len(node.asked)}", found)

            def close(self) -> None:
                node.closed += 1

        monkeypatch.setattr(module, "Link", Link)
        monkeypatch.setattr(module.threading.Event, "wait", self._wait)
        monkeypatch.setattr(reconnecting.time, "monotonic", lambda: self.now)

    def _wait(self, seconds: float) -> None:
        self.now += seconds

    def read(
        self, *, start: str = "", patience: float | None = None
    ) -> tuple[list[Any], Exception, Stream]:
        """Tokens and rows that come, and what ends them."""
        stream = Stream(
            _ADDRESS, "SELECT a FROM t", "db", start=start, timezone="UTC", patience=patience
        )
        found: list[Any] = []
        with pytest.raises(PenstockError) as ended:
            for rows in stream:
                found.append((rows.token, rows.rows.column("a").to_pylist()))
        return found, ended.value, stream


def test_rows_come_with_the_token_behind_them(monkeypatch):
    node = _Node(monkeypatch, [_message("t1", 1, 2), None, _message("t2", 3)])
    found, _, stream = node.read(start="here")
    assert found == [("t1", [1, 2]), ("t2", [3])]
    assert node.asked == [("SELECT a FROM t", "db", "here", "UTC")]
    assert stream.token == "t2"


def test_rows_without_a_token_wait_for_the_next_one(monkeypatch):
    node = _Node(monkeypatch, [_message(None, 1), _message(None, 2), _message("t1", 3)])
    assert node.read()[0] == [("t1", [1]), ("t1", [2]), ("t1", [3])]


def test_a_token_alone_moves_the_place(monkeypatch):
    found, _, stream = _Node(monkeypatch, [_message("t1")]).read()
    assert found == []
    assert stream.token == "t1"


def test_a_lost_link_is_made_again_behind_the_last_message(monkeypatch):
    lost = LinkLost("gone")
    node = _Node(
        monkeypatch,
        [_message("t1", 1), _message(None, 2), lost],
        lost,
        [_message("t2", 2), _message("t3", 3)],
    )
    found, _, _ = node.read()
    # what had no token yet comes again
    assert found == [("t1", [1]), ("t2", [2]), ("t3", [3])]
    assert [start for _, _, start, _ in node.asked] == ["", "t1", "t1"]
    assert node.closed == 3


def test_patience_ends(monkeypatch):
    node = _Node(monkeypatch, *[LinkLost("gone")] * 100)
    _, ended, _ = node.read(patience=5.0)
    assert isinstance(ended, LinkLost)
    assert 5.0 <= node.now < 8.0


def test_without_patience_it_goes_on_for_as_long_as_it_takes(monkeypatch, caplog):
    node = _Node(monkeypatch, *[LinkLost("gone")] * 90, [_message("t1", 1)])
    found, _, _ = node.read()
    assert found == [("t1", [1])]
    assert node.now > 300
    first, *_, last = caplog.messages
    assert "has not been reached since" in first and "(gone): an unbounded SELECT waits" in first
    assert "is there again after" in last
    # ever rarer: 5, 10, 20, … seconds
    assert len(caplog.messages) < 10


def test_what_is_wrong_is_said_at_once(monkeypatch):
    node = _Node(monkeypatch, CatalogError("no such table"))
    _, ended, _ = node.read()
    assert "no such table" in str(ended)
    assert node.now == 0


def test_opening_subscribes_before_the_first_row_is_asked_for(monkeypatch):
    node = _Node(monkeypatch, [_message("t1", 1)])
    stream = Stream(_ADDRESS, "SELECT a FROM t", "db", start="", timezone="UTC").open()
    assert stream.token == "s1"
    stream.open()
    assert len(node.asked) == 1
    assert next(iter(stream)) == StreamRows(_table(1), "t1")


def test_whoever_closes_it_gets_no_more(monkeypatch):
    node = _Node(monkeypatch, [_message("t1", 1), _message("t2", 2)])
    with Stream(_ADDRESS, "SELECT a FROM t", "db", start="", timezone="UTC") as stream:
        found = []
        for rows in stream:
            found.append(rows.token)
            stream.close()
    assert found == ["t1"]
    assert node.closed == 1
    assert list(stream) == []

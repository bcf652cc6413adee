"""What the demo of two deployments compares, without deployments."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from penstock.demo import federation
from penstock.demo.federation import DemoFailed
from penstock.sql import parse_one


def test_a_table_of_another_deployment_is_named_in_sql():
    there: Any = SimpleNamespace(mesh=SimpleNamespace(password="se-cret"))
    text = federation._external("hub.at_edge", 7707, there, "flights", "departures")
    assert "127.0.0.1:7707" in text and "se-cret" in text
    assert parse_one(text)


# -------------------------------------------------------------------- rows in the cloud's log


def _message(*rows: tuple[str, int]) -> Any:
    table = pa.table(
        {"tbname": [n for n, _ in rows], "ts": pa.array([t for _, t in rows], pa.timestamp("ms"))}
    )
    return SimpleNamespace(kind="rows", rows=table)


def _compared(monkeypatch: pytest.MonkeyPatch, *messages: Any) -> tuple[int, int]:
    """Rows lost and doubled, where three rows were sent."""
    left = list(messages)
    channel = SimpleNamespace(
        expect=lambda kind, seconds: None, get=lambda seconds: left.pop(0) if left else None
    )

    class Link:
        def __init__(self, address: Any) -> None:
            pass

        def __enter__(self) -> Any:
            return SimpleNamespace(subscribe=lambda *given, **more: channel)

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(federation, "Link", Link)
    late = pl.DataFrame({"tbname": ["a", "a", "b"], "ts": [1, 2, 1]})
    cloud: Any = SimpleNamespace(address=lambda: None)
    return federation._compare(cloud, late)


_TOKEN = SimpleNamespace(kind="token", rows=None)


def test_every_row_once_is_right(monkeypatch):
    messages = (_message(("a", 1), ("b", 1)), _TOKEN, _message(("a", 2)), _TOKEN)
    assert _compared(monkeypatch, *messages) == (0, 0)


def test_rows_that_lack_or_came_twice_are_counted(monkeypatch):
    assert _compared(monkeypatch) == (3, 0)
    assert _compared(monkeypatch, _message(("a", 1), ("a", 1)), _TOKEN) == (2, 1)


# -------------------------------------------------------------------- the third process


def _watcher(said: str) -> Any:
    return SimpleNamespace(stdin=io.StringIO(), stdout=io.StringIO(said), wait=lambda seconds: None)


def test_the_third_process_is_told_what_to_wait_for():
    watcher = _watcher('{"count": 3, "sum": 60}\n')
    assert federation._await_watcher(watcher, 3, 60) == 3
    assert json.loads(watcher.stdin.getvalue()) == {"count": 3, "sum": 60}


@pytest.mark.parametrize("said", ['{"count": 2, "sum": 60}\n', '{"count": 3, "sum": 61}\n', ""])
def test_a_third_process_that_sees_other_rows_fails_the_demo(said):
    with pytest.raises(DemoFailed, match="sees other rows"):
        federation._await_watcher(_watcher(said), 3, 60)

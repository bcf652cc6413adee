"""The table of this machine's windows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rich.console import Console

from penstock.demo import live
from penstock.sql import parse_one


def _shown(*messages: tuple[str, list[dict[str, Any]]]) -> str:
    screen = live._Screen()
    for name, items in messages:
        subscription: Any = [SimpleNamespace(items=items)]
        screen.listen(name, subscription)
    console = Console(width=120)
    with console.capture() as shown:
        console.print(screen.table())
    return shown.get()


def test_the_newest_window_of_each_core_is_shown():
    row = {"_wstart": 5_000, "busy": 12.345, "name": "core0", "op": 0, "tbname": "x"}
    text = _shown(
        ("by_core", [row, {**row, "name": "core1", "busy": 1.0}]),
        ("by_core", [{**row, "_wstart": 3_665_000, "busy": 99.96}]),
    )
    assert "01:01:05" in text and "busy=100.0" in text
    assert "12.3" not in text  # its window is over
    assert "by_core core1" in text and "00:00:05" in text
    assert "tbname" not in text


def test_statements_of_the_set_up_are_sql():
    assert all(parse_one(statement) for statement in live._SETUP)

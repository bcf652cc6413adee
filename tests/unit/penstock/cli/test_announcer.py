"""What `penstock up` says, and when."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from penstock.cli import announcer
from penstock.mesh.layout import Layout

_NOW = 1_700_000_000.0


def _state(*ready: str, services: tuple[str, ...], last: float | None = None) -> dict[str, Any]:
    return {
        "ready": set(ready) == set(services),
        "started": _NOW - 5,
        "last_start_seconds": last,
        "settings": {"PENSTOCK_GATEWAY_URL": "http://127.0.0.1:7700"},
        "services": {
            name: {"state": "ready" if name in ready else "starting"} for name in services
        },
    }


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(announcer.time, "time", lambda: _NOW)
    layout = Layout(tmp_path)
    layout.make()
    out = io.StringIO()
    made = announcer.Announcer(layout, Console(file=out, width=400))

    def see(*ready: str, **given: Any) -> str:
        out.seek(0)
        out.truncate()
        made.see(_state(*ready, **given))
        return out.getvalue()

    return see


_ALL = ("kafka", "gateway", "store", "spark")


def test_the_address_comes_as_soon_as_sql_is_answered_and_once(said: Any) -> None:
    assert said("kafka", services=_ALL) == ""
    assert said("kafka", "gateway", services=_ALL) == ""  # rows come from the store
    text = said("kafka", "gateway", "store", services=_ALL, last=17.0)
    assert "Penstock is up: http://127.0.0.1:7700" in text and "/login?token=" in text
    assert "SQL is answered; streams start in about 12 s" in text
    assert said("kafka", "gateway", "store", services=_ALL, last=17.0) == ""
    assert said(*_ALL, services=_ALL).split() == ["all", "is", "ready", "after", "5", "s"]
    assert said(*_ALL, services=_ALL) == ""


@pytest.mark.parametrize("last", [None, 3.0])
def test_without_an_earlier_start_or_behind_it_no_time_is_named(
    said: Any, last: float | None
) -> None:
    text = said("kafka", "gateway", "store", services=_ALL, last=last)
    assert "SQL is answered; streams start now" in text


def test_a_mesh_without_streams_or_gateway_says_what_it_has(said: Any) -> None:
    services = ("kafka", "gateway", "store", "notifier")
    assert "the rest starts now" in said("kafka", "gateway", "store", services=services)


def test_a_mesh_without_a_gateway_has_no_address(said: Any) -> None:
    text = said("kafka", services=("kafka",))
    assert "Penstock is up" not in text and "all is ready" in text

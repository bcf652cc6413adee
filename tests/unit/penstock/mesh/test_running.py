"""Whoever waits for a mesh waits for what moves, and is told what does not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import RemoteError
from penstock.mesh import running
from penstock.mesh.layout import Layout
from penstock.mesh.state import last_start, note_start

_SUPERVISOR: Any = SimpleNamespace(pid=7, poll=lambda: None)


def _state(*, ready: bool, stands_still: bool = False) -> dict[str, Any]:
    spark = {"state": "starting", "why": "session", "stands_still": stands_still}
    return {"supervisor": 7, "ready": ready, "services": {"spark": spark}}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.make()
    return made


def test_the_wait_ends_when_all_is_ready(layout, monkeypatch):
    states = [None, _state(ready=False), _state(ready=False), _state(ready=True)]
    monkeypatch.setattr(running, "read_state", lambda layout: states.pop(0))
    seen = [state["ready"] for state in running.wait_for_start(_SUPERVISOR, layout)]
    assert seen == [False, True]


def test_a_service_that_stands_still_ends_the_wait_with_the_end_of_its_log(layout, monkeypatch):
    states = [_state(ready=False), _state(ready=False, stands_still=True)]
    monkeypatch.setattr(running, "read_state", lambda layout: states.pop(0))
    layout.log("spark").write_text("the last words\n", encoding="utf-8")
    with pytest.raises(RemoteError) as failed:
        list(running.wait_for_start(_SUPERVISOR, layout))
    assert "spark does not get on with its start: session" in str(failed.value)
    assert failed.value.detail == "the last words"


def test_how_long_the_last_start_took_is_kept(layout):
    assert last_start(layout) is None
    note_start(layout, 17.25)
    assert last_start(layout) == pytest.approx(17.2, abs=0.1)
    layout.start_file.write_text("no number", encoding="utf-8")
    assert last_start(layout) is None

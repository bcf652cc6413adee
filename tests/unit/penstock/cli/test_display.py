"""The table of a mesh's services."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from penstock.cli import display
from penstock.cli.display import services_table
from penstock.mesh.layout import ports_from
from penstock.mesh.services import served
from penstock.runtime.health import Health

_PORTS = ports_from(7700)


def _service(**given: Any) -> dict[str, Any]:
    return {"state": "ready", "pid": 42, "started": 0, "restarts": 0, "why": "", **given}


def _shown(
    services: dict[str, Any], *, memory: bool = False, environment: Mapping[str, str] | None = None
) -> list[list[str]]:
    """Words of each line."""
    console = Console(width=200, record=True, file=io.StringIO())
    ports = served(_PORTS, environment or {})
    state = {"services": services, "ports": ports, "supervisor": 7}
    console.print(services_table(state, memory=memory))
    return [line.split() for line in console.export_text().splitlines() if line.strip()]


def test_a_service_has_its_ports_and_its_process():
    lines = _shown({"gateway": _service(), "node1": _service(restarts=3)})
    assert lines[0] == ["service", "state", "pid", "port", "health", "up", "restarts"]
    assert lines[1] == ["gateway", "ready", "42", "7700", "7710", "0"]
    assert lines[2] == ["node1", "ready", "42", "7721", "7731", "3"]


def test_the_postgresql_wire_is_shown_where_it_is_served() -> None:
    [_, line] = _shown({"gateway": _service()}, environment={"PENSTOCK_GATEWAY_POSTGRES": "1"})
    assert line == ["gateway", "ready", "42", "7700", "7706", "7710", "0"]


def test_a_service_without_a_process_says_why():
    [_, line] = _shown({"spark": _service(state="backoff", pid=None, why="no Java")})
    assert line == ["spark", "backoff", "7711", "0", "no", "Java"]


def test_the_jobs_say_which_of_them_stands_by() -> None:
    with Health("spark", wait_for=("queries",)) as health:
        health.ready("queries", True, "node 1 runs the jobs")
        services = {"spark": _service(), "spark2": _service(), "store": _service(why="?")}
        ports = {"spark-health": 1, "spark2-health": health.port}
        display.add_remarks({"services": services, "ports": ports})
    assert [s["why"] for s in services.values()] == ["", "node 1 runs the jobs", "?"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (5, "5 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h 0 min"),
        (9000, "2 h 30 min"),
    ],
)
def test_how_long_it_is_up(seconds, shown, monkeypatch):
    now = time.time()
    monkeypatch.setattr(display.time, "time", lambda: now)
    [_, line] = _shown({"kafka": _service(started=now - seconds)})
    assert " ".join(line[4:-1]) == shown


def test_memory_is_summed_up_with_the_supervisors(monkeypatch):
    sizes = {42: 30_000_000, 7: 5_000_000}
    asked: list[tuple[int, bool]] = []

    def size(pid: int, children: bool = True) -> int:
        asked.append((pid, children))
        return sizes[pid]

    monkeypatch.setattr(display, "proportional_memory", size)
    lines = _shown({"kafka": _service(), "store": _service(pid=None)}, memory=True)
    assert lines[1][-1] == "30"
    assert lines[2][-1] == "0"
    assert lines[3] == ["supervisor", "7", "5"]
    assert lines[4] == ["sum", "35"]
    assert asked == [(42, True), (7, False)]

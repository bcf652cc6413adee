"""The state of a mesh for people: one table of its services."""

from __future__ import annotations

import time
from typing import Any

from rich.table import Table
from rich.text import Text

from penstock.mesh.process import proportional_memory
from penstock.mesh.standby import STANDBY, remark

_STYLE = {
    "ready": "green",
    "starting": "yellow",
    "waiting": "dim",
    "unready": "yellow",
    "backoff": "red",
    "failed": "bold red",
    "stopped": "dim",
}
_PORTS = {
    "kafka": ("kafka",),
    "redis": ("redis",),
    "gateway": ("gateway", "postgres"),
    "store": ("store",),
    "notifier": ("notifier",),
    "spark": (),
    STANDBY: (),
    "federation": ("federation",),
    "snode": (),
}


def add_remarks(state: dict[str, Any]) -> None:
    """Ask the ready processes of the stream jobs what they say of themselves: which one stands
    by.
    """
    for name in ("spark", STANDBY):
        service = state["services"].get(name)
        if service is not None and service["state"] == "ready":
            service["why"] = remark(state["ports"][f"{name}-health"])


def _row(name: str, service: dict[str, Any], ports: dict[str, int]) -> list[str | Text]:
    """Return the cells of one service but for its memory."""
    own_ports = [port for port in _PORTS.get(name, (name,)) if port in ports]
    return [
        name,
        Text(service["state"], _STYLE.get(service["state"], "")),
        str(service["pid"] or ""),
        " ".join(str(ports[port]) for port in own_ports),
        str(ports.get(f"{name}-health", "")),
        _duration(time.time() - service["started"]) if service["started"] else "",
        str(service["restarts"]),
    ]


def services_table(state: dict[str, Any], *, memory: bool = False) -> Table:
    """List services with state, process, ports and restarts; *memory* adds PSS, which takes a
    moment to read.
    """
    table = Table(box=None, pad_edge=False)
    table.add_column("service")
    table.add_column("state")
    for heading in ("pid", "port", "health", "up", "restarts", *(("PSS MB",) if memory else ())):
        table.add_column(heading, justify="right")
    table.add_column("")
    total = 0
    for name, service in state["services"].items():
        row = _row(name, service, state["ports"])
        if memory:
            size = proportional_memory(service["pid"]) if service["pid"] else 0
            total += size
            row.append(f"{size / 1e6:.0f}")
        table.add_row(*row, Text(service["why"], "dim"))
    if memory:
        size = proportional_memory(state["supervisor"], children=False)
        table.add_row(
            "supervisor", "", str(state["supervisor"]), "", "", "", "", f"{size / 1e6:.0f}", ""
        )
        table.add_row("sum", "", "", "", "", "", "", f"{(total + size) / 1e6:.0f}", "")
    return table


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"

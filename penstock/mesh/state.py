"""What a supervisor leaves in its data directory for others: its state, and the services' logs."""

from __future__ import annotations

import json
import os
from typing import Any

from penstock.mesh.layout import Layout


def read_state(layout: Layout) -> dict[str, Any] | None:
    """What the supervisor of *layout* says; None when none runs."""
    try:
        state: dict[str, Any] = json.loads(layout.state_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    if "rooms" in state:  # of a supervisor that an earlier build started
        state["services"] = state.pop("rooms")
    return state if _runs(state["supervisor"]) else None


def last_start(layout: Layout) -> float | None:
    """Return the seconds that the last start of the mesh took until all was ready, if one has
    come so far.
    """
    try:
        return float(layout.start_file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def note_start(layout: Layout, seconds: float) -> None:
    """Keep how long a start took until all was ready."""
    layout.start_file.write_text(f"{seconds:.1f}\n", encoding="utf-8")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is somebody else's
        return True
    return True


def tail(layout: Layout, service: str, lines: int = 25) -> str:
    """The last lines of a service's log."""
    try:
        with open(layout.log(service), "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(file.tell() - 64 * 1024, 0))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""

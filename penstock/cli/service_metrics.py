"""What the services of a mesh on this machine say of themselves on their health ports."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

_SECONDS = 2.0
_SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{[^}]*\})? (?P<value>\S+)$", re.MULTILINE)


def health_ports(state: Mapping[str, Any]) -> dict[str, int]:
    """Return the health port of each running service that has one, by the service's name."""
    ports = state["ports"]
    return {
        name: int(ports[f"{name}-health"])
        for name in state["services"]
        if f"{name}-health" in ports
    }


def read_metrics(port: int, key: str | None = None) -> str:
    """Return the metrics of a service as text; empty when it does not answer.

    Args:
        key: opens the names in labels; without one they are pseudonyms.
    """
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics")
    if key is not None:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            return str(answer.read().decode(errors="replace"))
    except (OSError, urllib.error.URLError, ValueError):
        return ""


def total(metrics: str, name: str) -> float | None:
    """Return the sum of a metric over its labels; None when there is none."""
    found = [float(m["value"]) for m in _SAMPLE.finditer(metrics) if m["name"] == name]
    return sum(found) if found else None

"""Looks at what the services and streams of a mesh use and do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from penstock.cli.activity import (
    ROWS_METRIC,
    STREAMS,
    ActivitySample,
    ServiceCount,
    StreamCount,
    services_table,
    streams_table,
)
from penstock.cli.gateway import connection
from penstock.cli.service_metrics import health_ports, read_metrics, total
from penstock.errors import ConfigError, PenstockError
from penstock.mesh.layout import Layout
from penstock.mesh.process import cpu_seconds, proportional_memory
from penstock.mesh.state import read_state

if TYPE_CHECKING:
    from penstock.client.connection import Connection


class Observer:
    """Looks at the mesh of a data directory."""

    def __init__(self, data_dir: Path) -> None:
        """Raises ConfigError: no mesh runs there."""
        self._data_dir = data_dir
        self._layout = Layout(data_dir.expanduser().absolute())
        self._client: Connection | None = None
        #: why the gateway says nothing about streams
        self._silent = ""
        self._state = self._read_state()

    def _read_state(self) -> dict[str, Any]:
        state = read_state(self._layout)
        if state is None:
            raise ConfigError(
                f"no mesh runs in {self._layout.root}", hint="`penstock up` starts one"
            )
        return state

    def look(self) -> ActivitySample:
        """Return what every service has used so far, and what the gateway says of streams."""
        self._state = self._read_state()
        ports = health_ports(self._state)
        services = {}
        for name, service in self._state["services"].items():
            if not service["pid"]:
                continue
            metrics = read_metrics(ports[name]) if name in ROWS_METRIC and name in ports else ""
            services[name] = ServiceCount(
                cpu_seconds(service["pid"]),
                proportional_memory(service["pid"]),
                total(metrics, ROWS_METRIC[name]) if metrics else None,
            )
        return ActivitySample(time.monotonic(), services, self._streams())

    def _streams(self) -> list[StreamCount]:
        try:
            if self._client is None:
                self._client = connection(self._data_dir, None, "root", None, timeout=5.0)
            rows = self._client.query(STREAMS).rows
        except PenstockError as error:
            self._silent = f"the gateway says nothing of streams: {error.message}"
            return []
        self._silent = ""
        return [StreamCount(*row) for row in rows]

    def tables(self, before: ActivitySample, after: ActivitySample) -> RenderableType:
        """Return two tables: services and streams."""
        parts: list[RenderableType] = [services_table(self._state, before, after), Text("")]
        if self._silent:
            parts.append(Text(self._silent))
        elif after.streams:
            parts.append(streams_table(before, after))
        else:
            parts.append(Text("there are no streams"))
        return Group(*parts)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

"""Tickets: what a statement is asked with.

A ticket is JSON: {"sql": …, "database": …, "timezone": "UTC", "revision": 0, "after":
{"topic:partition": offset}, "positions": false, "parameters": […] or {…}}; or the bare text of a
statement; or what clients of InfluxDB 3 send: {"sql_query": …, "database": …, "query_type": "sql"}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

_INFLUX = "sql_query"
_INFLUX_NAMES = {"namespace_name": "database", "params": "parameters"}


@dataclass(frozen=True)
class TicketRequest:
    """What a ticket asks for.

    Attributes:
        revision: of the catalog that the caller knows; None: it does not say one, as users.
        after: "topic:partition" → offset that the answer must include.
        parameters: for the placeholders, as JSON has them.
        positions: the answer says up to where the log was read.
    """

    sql: str
    database: str = ""
    timezone: str = "UTC"
    revision: int | None = None
    after: Mapping[str, int] = field(default_factory=dict)
    parameters: Any = None
    positions: bool = False

    @property
    def from_service(self) -> bool:
        """Whether a gateway or another service asks, which answers by itself what stores do not."""
        return self.revision is not None

    def in_database(self, name: str) -> TicketRequest:
        """Return the same in the database *name*, unless it says one."""
        return self if self.database or not name else replace(self, database=name)

    def to_bytes(self) -> bytes:
        """Return the ticket."""
        more: dict[str, Any] = {"database": self.database, "parameters": self.parameters}
        if self.timezone != "UTC":
            more["timezone"] = self.timezone
        kept = {name: value for name, value in more.items() if value}
        return json.dumps({"sql": self.sql, **kept}).encode()


def read_ticket(ticket: bytes) -> TicketRequest:
    """Read a ticket. Raises ValueError, RecursionError."""
    text = ticket.decode()
    if not text.lstrip().startswith("{"):
        return TicketRequest(text)
    fields = json.loads(text)
    if _INFLUX in fields:
        fields = _influx_fields(fields)
    if not isinstance(fields.get("sql"), str):
        raise ValueError("it has no sql")
    after = fields.get("after") or {}
    if not isinstance(after, dict):
        raise ValueError("after is no object")
    revision = fields.get("revision")
    return TicketRequest(
        fields["sql"],
        _text(fields, "database"),
        _text(fields, "timezone") or "UTC",
        None if revision is None else _number(revision, "revision"),
        {_place(name): _number(offset, "an offset") for name, offset in after.items()},
        fields.get("parameters"),
        bool(fields.get("positions")),
    )


def _influx_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a ticket of InfluxDB 3 under our names. Raises ValueError."""
    kind = fields.get("query_type") or "sql"
    if kind != "sql":
        raise ValueError("query_type is sql here; the gateway answers InfluxQL at /query")
    named = {_INFLUX_NAMES.get(name, name): value for name, value in fields.items()}
    return {**named, "sql": fields[_INFLUX]}


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name) or ""
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def _number(value: object, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{what} is no number")
    return value


def _place(name: str) -> str:
    """Return the name of a partition. Raises ValueError."""
    _, _, partition = name.rpartition(":")
    int(partition)
    return name

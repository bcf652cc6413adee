"""The context of a request's statements: all that it says beside their text."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.rows.parameters import Parameters


@dataclass(frozen=True)
class RequestContext:
    """Who asks, and how their statements are to be read. Nobody ("") may do nothing."""

    database: str | None = None
    timezone: str = "UTC"
    user: str = ""
    #: idempotency key
    key: str | None = None
    remote: str = ""
    #: another gateway sent it, so it is not sent on
    forwarded: bool = False
    #: for the placeholders of its only statement
    parameters: Parameters | None = None
    #: its user proved to know the password, which a token or a session does not
    with_password: bool = False
    #: what its statements have to tell beside their answers, in order
    notices: list[str] = field(default_factory=list)
    #: (topic, partition) → offset of what its definitions have written for readers of rows
    own: dict[tuple[str, int], int] = field(default_factory=dict)

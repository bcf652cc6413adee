"""Options of a connection that few programs need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ConnectionOptions:
    """What `connect` takes besides the address, the login and the database.

    Args:
        timezone: of times without one in statements.
        timeout: seconds that a request may take.
        notifier_url: of the notifier; by default what the gateway says.
        ca: PEM file of authorities to trust besides the machine's own.
    """

    timezone: str = "UTC"
    timeout: float = 60.0
    notifier_url: str | None = None
    ca: str | Path | None = None

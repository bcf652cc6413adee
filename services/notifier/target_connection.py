"""What a delivery needs of a connection to its target, and how such a connection says that it
failed. Refused here: what is sent next, and when to try again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.errors import PenstockError
from services.notifier.message import NotifyMessage


@dataclass(frozen=True)
class TargetLimits:
    """Most messages, and about most characters of them, that go to a target at once; longest wait
    between two attempts, in seconds.
    """

    messages: int
    size: int
    wait: float


class TargetConnection(Protocol):
    """One at a time to a target; may be opened again after it was closed."""

    #: whether everybody's messages may go where the connection goes; known once it is open
    listed: bool

    @property
    def limits(self) -> TargetLimits: ...

    async def open(self) -> None:
        """Find the target. Raises OSError, WebSocketException, PenstockError."""

    async def send(self, messages: Sequence[NotifyMessage]) -> None:
        """Return when the target has confirmed all of them. Raises what `open` does, and
        ConnectionBroke.
        """

    async def close(self) -> None: ...


class TargetFailed(PenstockError):
    """The target does not take messages now."""

    code = "E_NOTIFY_TARGET"

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        """*retry_after*: seconds for which the target asks to be left alone."""
        super().__init__(message)
        self.retry_after = retry_after


class ConnectionBroke(TargetFailed):
    """It may have taken what was sent last, or not. It is worth a second attempt at once."""

"""State, errors and times of a followed table.

connecting → live ⇄ disconnected → failed (the retry window is over), closed
"""

from __future__ import annotations

import time
from typing import Any, Literal

from penstock.errors import PenstockError

State = Literal["connecting", "live", "disconnected", "failed", "closed"]


class MirrorStatus:
    """Changed by the thread that follows the table; read by any."""

    def __init__(self) -> None:
        self.state: State = "connecting"
        #: why it is not live
        self.error: PenstockError | None = None
        #: links made anew since the start, and attempts since the last one that worked
        self.reconnects = 0
        self.attempts = 0
        #: time at which the newest message came, epoch seconds
        self.updated_at = 0.0

    @property
    def stale(self) -> bool:
        """True while the rows here are not those of this moment."""
        return self.state != "live"

    @property
    def has_ended(self) -> bool:
        return self.state in ("failed", "closed")

    @property
    def is_cut_off(self) -> bool:
        """True while there is no link, but may be one later."""
        return self.state in ("connecting", "disconnected")

    def require_alive(self) -> None:
        """Raise the error of a table that has failed."""
        if self.state == "failed" and self.error is not None:
            raise self.error

    def become(self, state: State) -> None:
        """Enter *state*; a table that has failed can only be closed."""
        if self.state != "failed" or state == "closed":
            self.state = state
        if state == "live":
            self.error = None

    def note_rows(self) -> None:
        """Note that the rows here have changed now."""
        self.updated_at = time.time()

    def note_first_rows(self) -> None:
        """Note rows that were read anew: after a reconnect when there were some before."""
        self.reconnects += self.updated_at != 0.0
        self.note_rows()

    def to_dict(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "stale": self.stale,
            "reconnects": self.reconnects,
            "updated_at": self.updated_at,
            "error": None if self.error is None else self.error.to_dict(),
        }

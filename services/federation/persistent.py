"""A thread with one task for all its life: what breaks is told and tried again, after a pause that
doubles until something came of it.

Refused: giving up, but where a task says that it `ends`. What somebody has to see to is tried less
often, and a bug no less than a link that broke.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from penstock.errors import PenstockError, RemoteError
from penstock.runtime import vital
from penstock.runtime.log import get
from services.federation.settings import FederationSettings

log = get(__name__)
#: errors that somebody has to see to are tried this much less often
_SLOWER = 5.0


@dataclass
class Report:
    """What a task says of itself; written by its thread, read by others."""

    state: str = "starting"
    rows: int = 0
    #: rows that did not fit, and are dead letters
    dropped: int = 0
    lag: int | None = None
    error: str = ""
    #: when everything there was had been sent (clock seconds)
    level_at: float = field(default_factory=time.time)


class Persistent(threading.Thread, ABC):
    """Runs until `stop`."""

    def __init__(self, name: str, settings: FederationSettings, **shown: str | int) -> None:
        """*shown*: what log lines say it is."""
        super().__init__(name=name, daemon=True)
        self._settings = settings
        self._shown = shown
        self._halt = threading.Event()
        self.report = Report()

    @abstractmethod
    def work(self) -> None:
        """Do it, with links of its own, until `_halt` is set. Raises PenstockError."""

    @abstractmethod
    def passes(self, error: PenstockError) -> bool:
        """Whether *error* goes by itself."""

    def ends(self, error: PenstockError) -> bool:
        """Whether *error* is the end of the task: what is tried again ends the same way until
        somebody has seen to it.
        """
        return False

    def stop(self) -> None:
        self._halt.set()

    @vital.run
    def run(self) -> None:
        pause = self._settings.retry_min
        while not self._halt.is_set():
            before = self.report.rows
            try:
                self.work()
                return
            except PenstockError as error:
                if self.ends(error):
                    self._say("stopped", error)
                    return
                self._say("retrying" if self.passes(error) else "error", error)
            except vital.FAULTS as bug:
                log.exception("a task found a bug", **self._shown)
                self._say(
                    "error", RemoteError(f"this is a bug: {type(bug).__name__}", code="E_INTERNAL")
                )
            if self.report.rows > before:
                pause = self._settings.retry_min
            self._halt.wait(pause * (_SLOWER if self.report.state == "error" else 1.0))
            pause = min(pause * 2, self._settings.retry_max)

    def _say(self, state: str, error: PenstockError) -> None:
        text = f"{error.code}: {error.message}" + (f" ({error.detail})" if error.detail else "")
        if text != self.report.error:
            log.warning("a task waits", reason=text, **self._shown)
        self.report.state = state
        self.report.error = text

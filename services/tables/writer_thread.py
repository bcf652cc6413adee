"""The thread that sends what producers wrote to the tables that this node leads."""

from __future__ import annotations

import threading

from penstock.runtime import vital
from penstock.runtime.log import get
from services.tables.election import Election
from services.tables.session import LeaderSession

log = get(__name__)


class WriterThread(threading.Thread):
    """Sends what producers wrote, table after table."""

    def __init__(self, election: Election) -> None:
        super().__init__(name="writer", daemon=True)
        self._election = election
        self._wake = threading.Event()
        self._halt = False

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._halt = True
        self._wake.set()
        self.join(timeout=5)

    @vital.run
    def run(self) -> None:
        while not self._halt:
            self._wake.wait(1.0)
            self._wake.clear()
            busy = True
            while busy and not self._halt:
                sessions = [
                    s
                    for standing in self._election.standings.values()
                    for s in list(standing.sessions.values())
                ]
                busy = any([self._work(s) for s in sessions])

    @staticmethod
    def _work(session: LeaderSession) -> bool:
        try:
            return session.work()
        except vital.FAULTS:
            log.exception("a write could not be sent", table=session.replica.name)
            return False

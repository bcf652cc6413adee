"""Producers and subscribers that write down what they were told, to be compared when everything is
over.

`acks-*.csv`: one line for each row that was acked: producer, number. `rows-*.csv`: one line for
each row a subscriber got, in order: its id, producer, number, when it was sent and when it came
(both in microseconds of one clock).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import penstock
from penstock.client.connection import Connection
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh

if TYPE_CHECKING:
    from tests.backends import RunningStack

DATABASE = "faults"
TABLE = "trades"
NAME = f"{DATABASE}.{TABLE}"
GROUP = 11
_COLUMNS = ["ts", "producer", "number", "sent"]
_TYPES = ["TIMESTAMP", "VARCHAR(16)", "BIGINT", "BIGINT"]


def micros() -> int:
    return time.monotonic_ns() // 1000


def create(client: Connection) -> None:
    client.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    client.ha.create(GROUP, penstock.table(_COLUMNS, _TYPES), NAME, 50_000)


class Producer(threading.Thread):
    """Writes one to *most* rows at a time and waits for each answer."""

    def __init__(self, client: Connection, name: str, path: Path, most: int) -> None:
        super().__init__(name=f"producer-{name}", daemon=True)
        self._table = client.ha.table(NAME)
        self.producer = name
        self._path = path
        self._most = most
        self._halt = threading.Event()
        self.acked = 0
        self.failed: list[str] = []

    def run(self) -> None:
        number = 0
        turn = 0
        with open(self._path, "w", encoding="utf-8") as log:
            while not self._halt.is_set():
                turn += 1
                numbers = list(range(number, number + 1 + turn % self._most))
                number = numbers[-1] + 1
                n = len(numbers)
                rows = {
                    "ts": [time.time_ns() // 10**6] * n,
                    "producer": [self.producer] * n,
                    "number": numbers,
                    "sent": [micros()] * n,
                }
                try:
                    self._table.append(rows)
                except PenstockError as error:
                    self.failed.append(str(error))
                    continue
                log.writelines(f"{self.producer},{i}\n" for i in numbers)
                log.flush()
                self.acked += n
        self._table.close()

    def stop(self) -> None:
        self._halt.set()
        self.join(90)


class Watcher:
    """A subscriber that writes each row down."""

    def __init__(self, client: Connection, name: str, path: Path, node: str | None) -> None:
        self._log: IO[str] = open(path, "w", encoding="utf-8")
        self._lock = threading.Condition()
        #: (sent, came) of rows in order of arrival
        self.rows: list[tuple[int, int]] = []
        self.subscription = client.ha.subscribe(
            NAME,
            self._take,
            name,
            offset=0,
            server=node,
            options=penstock.SubscriptionOptions(msg_as_table=True, reconnect=True),
        )

    def _take(self, message: penstock.Message) -> None:
        came = micros()
        assert message.row_ids is not None
        ids = message.row_ids.to_pylist()
        table = message.table
        names, numbers, sent = (table.column(c).to_pylist() for c in _COLUMNS[1:])
        self._log.writelines(
            f"{i},{p},{n},{s},{came}\n"
            for i, p, n, s in zip(ids, names, numbers, sent, strict=True)
        )
        with self._lock:
            self.rows += [(s, came) for s in sent]
            self._lock.notify_all()

    def after(self, moment: int, seconds: float) -> int:
        """Wait for the first row that was sent after *moment*; when it came. Raises
        TimeoutError.
        """

        def found() -> int | None:
            return next((came for sent, came in self.rows[-20_000:] if sent > moment), None)

        with self._lock:
            came = self._lock.wait_for(found, seconds)
        if came is None:
            raise TimeoutError(f"no row in {seconds} s: {self.subscription.to_dict()}")
        return came

    def wait_for(self, rows: int, seconds: float) -> None:
        with self._lock:
            self._lock.wait_for(
                lambda: len(self.rows) >= rows or self.subscription.error is not None, seconds
            )

    def close(self) -> None:
        self.subscription.close()
        self._log.close()


@contextmanager
def load(
    mesh: RunningMesh | RunningStack, out: Path, *, producers: int = 2, most: int = 5
) -> Iterator[tuple[list[Producer], list[Watcher]]]:
    """Producers and two subscribers, at work until the end of the `with`; then all rows have come
    to all.
    """
    out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:

        def client() -> Connection:
            return stack.enter_context(
                penstock.connect(
                    mesh.gateway_url,
                    user=mesh.user,
                    password=mesh.password,
                    options=penstock.ConnectionOptions(timeout=60),
                )
            )

        create(client())
        watchers = [
            Watcher(client(), f"w{i}", out / f"rows-w{i}.csv", node)
            for i, node in enumerate((None, "NODE2"))
        ]
        writers = [
            Producer(client(), f"p{i}", out / f"acks-p{i}.csv", most) for i in range(producers)
        ]
        for writer in writers:
            writer.start()
        try:
            yield writers, watchers
        finally:
            for writer in writers:
                writer.stop()
            written = sum(w.acked for w in writers)
            for watcher in watchers:
                watcher.wait_for(written, 30)
                watcher.close()

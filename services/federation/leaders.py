"""Rows that another deployment sends, into a stream table: through whoever leads its group, each
exactly once.

A producer's rows carry their place in its own log (`_offset`, `_row`), and a write of ours is
numbered by the place of its last row. It says which one it follows, so a write from before a cut
that arrives late, or rows that are cut differently when they come again, cannot be there twice: the
leader refuses, we ask how far it is, and send what lies behind. A write is small enough that the
leader never cuts it.

Owns finding the leader, and sending again until the outcome is known. Deletes have no meaning in a
stream table and are left out.
"""

from __future__ import annotations

import itertools
import secrets
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import redis
import tenacity

from penstock.catalog.model import Table
from penstock.catalog.stream_tables import groups_of_tables
from penstock.catalog.view import Catalog
from penstock.client.gateway import authorization
from penstock.client.nodes import Nodes, patience_is_over
from penstock.client.wire import to_stream
from penstock.config.raft import RaftGroups
from penstock.coordination.presence import Registry
from penstock.errors import BusError, PenstockError, RemoteError
from penstock.rows.versions import DELETE, without_clears
from services.federation.appender import writable
from services.federation.conform import conform
from services.federation.places import LogPlace

#: rows and bytes of one write
_ROWS = 5_000
_BYTES = 256 * 1024
#: appenders that may wait for their leaders at once
_THREADS = 64
#: seconds that a leader may take to answer; then somebody else is asked who leads
_ANSWER_S = 3.0
_PAUSE_S = 0.05
_AGAIN = frozenset(
    {
        "E_NODE_DOWN",
        "E_NOT_LEADER",
        "E_SEQUENCE",
        "E_OVERLOAD",
        "E_NO_QUORUM",
        "E_BUS",
        "E_REDIS_DOWN",
    }
)
_ROW_BITS = 20
_ARROW = pl.CompatLevel.oldest()
#: rows, and the future of their number
_Waiting = tuple[pl.DataFrame, Future[int]]


class Leaders:
    """Who leads which group, and asking them. One per process; thread-safe."""

    def __init__(
        self,
        groups: RaftGroups,
        client: redis.Redis,
        catalog: Callable[[], Catalog],
        user: str,
        password: str,
        patience: float,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """
        Args:
            patience: seconds to go on trying until a write's outcome is known.
            context: for nodes that speak TLS.
        """
        registry = Registry(client, 1.0)

        def fetch() -> dict[str, Any]:
            return registry.describe(groups, groups_of_tables(catalog()), registry.urls)

        self._nodes = Nodes(fetch, authorization(user, password), among_nodes=True, context=context)
        self.patience = patience
        self.pool = ThreadPoolExecutor(_THREADS, "leaders")

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        self._nodes.close()

    def leader(self, table: Table, avoid: str) -> str:
        """Where the leader of a table's group is. Raises PenstockError; RemoteError
        (`E_NOT_LEADER`) when nobody says.
        """
        assert table.replicated is not None
        found = self._nodes.leader(table.replicated.group, avoid=avoid)
        if found is None or not found.url:
            raise RemoteError(
                f"nobody leads group {table.replicated.group}",
                code="E_NOT_LEADER",
                hint="start the missing nodes",
            )
        return found.url

    def last_sequence(self, url: str, table: Table, producer: str) -> int:
        """The number of a producer's last write, as the leader at *url* knows it; 0: none. Raises
        PenstockError.
        """
        answer = self._nodes.ask(
            url, f"{_path(table)}/producer?id={quote(producer, safe='')}", seconds=_ANSWER_S
        )
        return int(answer["sequence"])

    def write(self, url: str, table: Table, body: bytes) -> None:
        """Return when the rows are in the log for good. Raises PenstockError."""
        self._nodes.ask(url, f"{_path(table)}/rows", body, seconds=_ANSWER_S)


class LeaderAppender:
    """Takes the rows of one producer (None: of nobody in particular) for one stream table.
    Thread-safe.
    """

    def __init__(
        self, table: Callable[[], Table | None], producer: str | None, leaders: Leaders
    ) -> None:
        self._table = table
        self._leaders = leaders
        self._producer = producer or f"l-{secrets.token_hex(8)}"
        self._counted = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._sending = False
        self._halt = threading.Event()
        self.broken: PenstockError | None = None
        #: number of the producer's last write; None: to be asked
        self._reached: int | None = None

    def append(self, rows: pa.Table, acked: Callable[[str, int, int], None]) -> Future[int]:
        """Write rows; once the leader has them the future has the number of those that were not
        there before.

        Args:
            rows: as for `Appender.append`.
            acked: not called: only the leader knows where its records are.

        Raises:
            PenstockError: the rows do not fit, or an earlier write failed.
        """
        done: Future[int] = Future()
        with self._lock:
            frame = without_clears(conform(rows, writable(self._table, self.broken)))
            frame = frame.filter(pl.col("_op") != DELETE)
            if "_offset" not in frame.columns:
                frame = frame.with_columns(
                    _offset=pl.lit(next(self._counted), pl.Int64),
                    _row=pl.int_range(pl.len(), dtype=pl.Int64),
                )
            self._waiting.append((frame.drop("tbname", "_op"), done))
            if not self._sending:
                self._sending = True
                self._leaders.pool.submit(self._send)
        return done

    def delete(
        self,
        tables: Sequence[str] | None,
        partition: int | None,
        low: int,
        high: int,
        offset: int,
        acked: Callable[[str, int, int], None],
    ) -> Future[int]:
        """Nothing: rows of a stream table stay."""
        done: Future[int] = Future()
        done.set_result(0)
        return done

    def close(self, patience: float) -> dict[int, LogPlace] | None:
        """Take nothing more. What is under way may come about; whoever goes on asks the leader."""
        self.broken = self.broken or BusError(
            "another connection writes for this producer now", code="E_FENCED"
        )
        self._halt.set()
        return None

    # ---------------------------------------------------------------- a thread of the pool

    def _send(self) -> None:
        """Send what waits, several frames in one write where they are small."""
        while taken := self._take():
            try:
                frames = [f for f, _ in taken if f.height]
                begun = self._deliver(pl.concat(frames, how="diagonal")) if frames else 0
            except Exception as error:
                self._give_up(taken, error)
                return
            for frame, done in taken:
                done.set_result(_behind(frame, begun).height)

    def _take(self) -> list[_Waiting]:
        """Take frames for one write; when there are none, note that nobody sends."""
        with self._lock:
            taken: list[_Waiting] = []
            rows = 0
            while self._waiting and (not taken or rows + self._waiting[0][0].height <= _ROWS):
                taken.append(self._waiting.popleft())
                rows += taken[-1][0].height
            if not taken:
                self._sending = False
            return taken

    def _give_up(self, taken: list[_Waiting], error: Exception) -> None:
        """Fail what was taken and all that waits behind it."""
        failed = error
        if not isinstance(failed, PenstockError):
            failed = BusError(f"this is a bug: {error!r}", code="E_INTERNAL")
        with self._lock:
            self.broken = self.broken or failed
            self._sending = False
            taken += self._waiting
            self._waiting.clear()
        for _, done in taken:
            done.set_exception(failed)

    def _deliver(self, frame: pl.DataFrame) -> int:
        """Have the leader write the rows that it has not; the number that the producer was at
        before.
        """
        moved = time.monotonic()
        avoid = ""
        url = ""
        begun: int | None = None

        def attempt() -> int:
            nonlocal moved, avoid, url, begun
            try:
                table = writable(self._table, self.broken)
                url = self._leaders.leader(table, avoid)
                if self._reached is None:
                    self._reached = self._leaders.last_sequence(url, table, self._producer)
                begun = self._reached if begun is None else begun
                for piece in _pieces(_behind(frame, self._reached)):
                    number = _number(piece)
                    self._leaders.write(url, table, self._body(piece, number, self._reached))
                    self._reached = number
                    moved = time.monotonic()
                    avoid = ""
                return begun
            except PenstockError as error:
                if error.code == "E_SEQUENCE":
                    self._reached = None
                avoid = url if error.code in ("E_NODE_DOWN", "E_NOT_LEADER") else ""
                raise

        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda e: (
                    isinstance(e, PenstockError) and e.code in _AGAIN and not self._halt.is_set()
                )
            ),
            wait=tenacity.wait_fixed(_PAUSE_S),
            sleep=tenacity.sleep_using_event(self._halt),
            stop=lambda _: time.monotonic() - moved > self._leaders.patience,
            retry_error_callback=patience_is_over,
        )
        return attempts(attempt)

    def _body(self, piece: pl.DataFrame, number: int, after: int) -> bytes:
        meta = {
            "penstock.producer": self._producer,
            "penstock.seq": str(number),
            "penstock.after": str(after),
        }
        return to_stream(piece.drop("_offset", "_row").to_arrow(compat_level=_ARROW), meta)


def _number(rows: pl.DataFrame) -> int:
    """Of a write that ends with the last of *rows*."""
    return (int(rows["_offset"][-1]) << _ROW_BITS | int(rows["_row"][-1])) + 1


def _behind(rows: pl.DataFrame, reached: int) -> pl.DataFrame:
    """Those of *rows* that come after the write numbered *reached*."""
    last = reached - 1
    offset = last >> _ROW_BITS
    row = last & ((1 << _ROW_BITS) - 1)
    return rows.filter(
        (pl.col("_offset") > offset) | ((pl.col("_offset") == offset) & (pl.col("_row") > row))
    )


def _pieces(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Writes that the leader does not cut."""
    if rows.height > _ROWS or (rows.height > 1 and rows.estimated_size() > _BYTES):
        half = rows.height // 2
        yield from _pieces(rows[:half])
        yield from _pieces(rows[half:])
    elif rows.height:
        yield rows


def _path(table: Table) -> str:
    return f"/v1/tables/{quote(table.database, safe='')}/{quote(table.name, safe='')}"

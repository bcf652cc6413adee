"""`RemoteTable`: a table of another deployment as a live object here, which follows it, survives
cuts and says how it is.

A snapshot with its place in the log comes first, then everything behind that place, so nothing is
missed or had twice. What has come is kept as frames and put together when somebody looks: an update
costs what it brings, not what the table holds. A message is applied whole.

    connecting → live ⇄ disconnected → failed (the retry window is over), closed

Cut off, a table shows no rows (`clear`) or those it had (`retain`); when the link is back it goes
on behind its token and shows all of them again. A table that was dropped and made again over there
is read anew, in one step.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from penstock import vital
from penstock.cursor import Cursor, TokenError
from penstock.errors import PenstockError, RemoteError
from penstock.link import external
from penstock.link.client import Channel, Link, LinkLost, Message, connect_any
from penstock.link.description import Description
from penstock.link.held import Held, schema_of, to_arrow, versions
from penstock.link.wanted import Left, Options, Target, Wanted
from penstock.versions import CLEAR

if TYPE_CHECKING:
    import pandas as pd

    from penstock.client.connection import Connection

State = Literal["connecting", "live", "disconnected", "failed", "closed"]
_PAUSES = (0.05, 2.0)
#: an update cycle without rows empties a blink table
CYCLE_SECONDS = 1.0


@dataclass(frozen=True)
class Update:
    """What happened. `rows`: added or changed rows (and, where `_op` is 1, removed ones); `reset`:
    all is new; `clear`: cut off.
    """

    kind: Literal["rows", "delete", "reset", "clear", "restored"]
    rows: pa.Table | None = None


class RemoteTable:
    """Use it in a `with`, or `close` it. Reading it is safe from any thread."""

    def __init__(
        self, target: Target, options: Options, definition: Description | None = None
    ) -> None:
        """`definition`: what it looks like, so that it can be followed before the other side is
        there.
        """
        self.target = target
        self.options = options
        self._definition = self._description = definition
        self._lock = threading.Condition()
        self._wanted = Wanted(options, definition)
        self._held = Held()
        self._token = ""
        self._table_id = 0
        self._cycle: pa.Table | None = None
        self._link: Link | None = None
        self.state: State = "connecting"
        #: why it is not live
        self.error: PenstockError | None = None
        #: links made anew since the start, and attempts since the last one that worked
        self.reconnects = self.attempts = 0
        #: times at which the newest message came, epoch seconds
        self.updated_at = 0.0
        self._listeners: list[Callable[[Update], None]] = []
        self._watchers: list[queue.SimpleQueue[Update | None]] = []
        self._halt = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"remote-{target.shown}", daemon=True
        )

    # ---------------------------------------------------------------- reading

    @property
    def columns(self) -> list[str]:
        return [c.name for c in self._wanted.shown(self._known())]

    @property
    def schema(self) -> pa.Schema:
        """Raises RemoteError while nobody knows it."""
        description = self._known()
        return schema_of(self._wanted.shown(description), description.precision)

    @property
    def stale(self) -> bool:
        """Whether its rows are not those of this moment."""
        return self.state != "live"

    @property
    def status(self) -> dict[str, Any]:
        """How it is, for people and programs."""
        error = None if self.error is None else self.error.to_dict()
        return {
            "state": self.state,
            "stale": self.stale,
            "reconnects": self.reconnects,
            "updated_at": self.updated_at,
            "error": error,
        }

    def to_arrow(self) -> pa.Table:
        """The rows as they are now. Raises PenstockError when the table has failed."""
        with self._lock:
            if self.state == "failed" and self.error is not None:
                raise self.error
            if self._hidden():
                return self.schema.empty_table()
            if self.options.blink:
                return self.schema.empty_table() if self._cycle is None else self._cycle
            description = self._known()
            frame = self._held.frame(description)
        if frame is None:
            return self.schema.empty_table()
        return to_arrow(frame, self._wanted.shown(description), description.precision)

    def to_polars(self) -> pl.DataFrame:
        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_pandas(self) -> pd.DataFrame:
        return self.to_arrow().to_pandas()

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def sql(self, text: str) -> pa.Table:
        """A DuckDB query in which this table is called `t`."""
        import duckdb

        with duckdb.connect() as connection:
            connection.register("t", self.to_arrow())
            return connection.sql(text).to_arrow_table()

    def make_external(self, connection: Connection, name: str) -> None:
        """Make an external stream *name* of it in the deployment behind *connection*, where SQL,
        windows and views read it from then on.

        Raises:
            PenstockError: that deployment does not reach it, or the table is filtered (WHERE over
                the external stream does that).
        """
        if self.options.where:
            raise RemoteError(
                "an external stream has no filter of its own",
                hint="write the condition behind WHERE, where it is read",
            )
        description = self._known()
        if not description.name:
            raise RemoteError(
                f"nobody has seen {self.target.shown} yet", hint="wait until it is live"
            )
        columns = (
            self._wanted.columns(description)
            if self.options.columns or self._definition is not None
            else None
        )
        connection.execute(external.statement(name, self.target.replicas, description, columns))

    # ---------------------------------------------------------------- following

    def on_update(self, listener: Callable[[Update], None]) -> None:
        """Have *listener* called, on the table's own thread, with everything that happens from now
        on.
        """
        with self._lock:
            self._listeners.append(listener)

    def updates(self, timeout: float | None = None) -> Iterator[Update]:
        """What happens from now on, one by one; ends when the table is closed, or when nothing came
        for *timeout* seconds.

        Raises:
            PenstockError: the table has failed.
        """
        watcher: queue.SimpleQueue[Update | None] = queue.SimpleQueue()
        with self._lock:
            self._watchers.append(watcher)
        try:
            while True:
                try:
                    update = watcher.get(timeout=timeout)
                except queue.Empty:
                    return
                if update is None:
                    if self.state == "failed" and self.error is not None:
                        raise self.error
                    return
                yield update
        finally:
            with self._lock:
                self._watchers.remove(watcher)

    def wait(self, condition: Callable[[RemoteTable], bool], timeout: float = 30.0) -> None:
        """Return when *condition* holds. Raises RemoteError when it does not in time."""
        deadline = time.monotonic() + timeout
        while not condition(self):
            with self._lock:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise RemoteError(
                        "it did not happen in time",
                        code="E_TIMEOUT",
                        detail=f"{self.target.shown} is {self.state}",
                    )
                self._lock.wait(min(left, 0.05))

    def close(self) -> None:
        """Stop following; rows that are here can be read on."""
        self._halt.set()
        if self._link is not None:
            self._link.close()
        if self._thread.is_alive():
            self._thread.join(5.0)
        self._become("closed")
        self._tell(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---------------------------------------------------------------- the thread

    def start(self) -> Self:
        """Follow the table; returns when its first rows are here, or at once when it was given a
        definition.

        Raises:
            PenstockError: it cannot be followed.
        """
        if self.options.blink_required:
            raise RemoteError(
                f"{self.target.shown} is no blink table",
                code="E_NOT_BLINK",
                hint="blink=true makes one of it here",
            )
        if self._definition is not None:
            self._thread.start()
            return self
        left = Left(self.options.wait_timeout_ms)
        try:
            channel = self._open(left)
        except PenstockError as error:
            self._disconnect()
            raise left.told(error, self.target) from error
        self._thread = threading.Thread(
            target=self._run, args=(channel,), name=self._thread.name, daemon=True
        )
        self._thread.start()
        return self

    def _run(self, channel: Channel | None = None) -> None:
        lost_at = time.monotonic()
        pause = _PAUSES[0]
        while not self._halt.is_set():
            try:
                channel = channel or self._open(Left())
                lost_at = time.monotonic()
                pause = _PAUSES[0]
                self.attempts = 0
                self._follow(channel)
            except PenstockError as error:
                self._lost(error)
            except vital.FAULTS as bug:
                self._lost(
                    RemoteError(
                        f"following the table failed: {type(bug).__name__}",
                        code="E_INTERNAL",
                        detail=str(bug)[:200],
                    )
                )
            channel = None
            if self._halt.is_set():
                return
            if self.state == "live":
                lost_at = time.monotonic()
            over = (time.monotonic() - lost_at) * 1000 > self.options.retry_window_ms
            if (
                over
                or (self.options.max_retries and self.attempts >= self.options.max_retries)
                or self.options.retry_window_ms == 0
            ):
                self._fail()
                return
            self._halt.wait(pause)
            pause = min(pause * 2, _PAUSES[1])
            self.attempts += 1

    def _open(self, left: Left) -> Channel:
        """Link, table, first rows (or those missed), subscription: live when it returns. Raises
        PenstockError.
        """
        self._disconnect()
        link = self._link = connect_any(self.target.replicas, timeout=left.step())
        description = link.resolve(
            self.target.table, self.target.query, self.target.serial, timeout=left.step()
        )
        self._wanted.check(description)
        again = self._table_id == description.id and bool(self._token)
        with self._lock:
            self._description = description
            self._table_id = description.id
        if again:
            try:
                return self._continue(link, description, self._token, left)
            except PenstockError as error:
                if error.code != TokenError.code:
                    raise
        return self._anew(link, description, left)

    def _subscribe(self, link: Link, description: Description, token: str, left: Left) -> Channel:
        channel = link.subscribe(
            self._wanted.following(description),
            description.database,
            start=token,
            cycles=self.options.blink,
            query=self.target.query,
            serial=self.target.serial,
        )
        channel.expect("subscribed", left.step())
        return channel

    def _continue(self, link: Link, description: Description, token: str, left: Left) -> Channel:
        channel = self._subscribe(link, description, token, left)
        self.reconnects += 1
        self._become("live")
        self._tell(Update("restored"))
        return channel

    def _anew(self, link: Link, description: Description, left: Left) -> Channel:
        """All rows as of one place of the log, and what follows."""
        frames: list[pl.DataFrame] = []
        positions: dict[int, int] = {}
        if self.options.blink:
            channel = self._subscribe(link, description, "latest", left)
        else:
            for piece in link.stream_query(
                self._wanted.snapshot(description),
                description.database,
                positions=True,
                timeout=left.all(),
            ):
                if not frames:
                    held = json.loads(
                        (piece.schema.metadata or {}).get(b"penstock.positions", b"{}")
                    )
                    positions = {
                        int(place.rpartition(":")[2]): int(offset) for place, offset in held.items()
                    }
                frames.append(versions(piece, description, self._wanted.columns(description)))
            token = f"{description.id}.{Cursor(positions).token()}"
            channel = self._subscribe(link, description, token, left)
        first = self.updated_at == 0.0
        with self._lock:
            self._held = Held(frames)
            self._cycle = None
            self._token = "" if self.options.blink else token
        self.reconnects += not first
        self.updated_at = time.time()
        self._become("live")
        self._tell(Update("reset"))
        return channel

    def _follow(self, channel: Channel) -> None:
        """Apply messages until the link breaks. Raises PenstockError."""
        while not self._halt.is_set():
            message = channel.get(CYCLE_SECONDS if self.options.blink else 5.0)
            if message is None:
                if self.options.blink and self._cycle is not None and self._cycle.num_rows:
                    with self._lock:
                        self._cycle = None
                    self._tell(Update("reset"))
                continue
            self._apply(message)

    def _apply(self, message: Message) -> None:
        if message.kind == "schema":
            with self._lock:
                self._held.settle(self._known())
                self._description = Description.from_json(message.header["table"])
            return
        if message.rows is not None and self.options.blink:
            self._blink(message)
        elif message.rows is not None:
            with self._lock:
                description = self._known()
                self._held.add(message.rows, description, self._wanted.columns(description))
        elif message.kind == "delete" and not self.options.blink:
            with self._lock:
                low = int(message.header["low"])
                high = int(message.header["high"])
                self._held.delete(message.header.get("tables"), low, high, self._known())
        elif message.kind == "tags" and not self.options.blink:
            with self._lock:
                tags = json.loads(message.header.get("tags") or "{}")
                self._held.retag(message.header.get("tables") or [], tags, self._known())
        token = message.header.get("token")
        with self._lock:
            self._token = str(token) if token is not None else self._token
            self.updated_at = time.time()
            self._lock.notify_all()
        if message.rows is not None:
            if not self.options.blink:
                self._tell(Update("rows", self._visible(message.rows)))
        elif message.kind in ("delete", "tags"):
            self._tell(Update("delete"))

    def _blink(self, message: Message) -> None:
        """Each batch of the source is a cycle of its own: rows of one are gone with the next."""
        rows = message.rows
        assert rows is not None
        start = 0
        for count in message.header.get("cycles") or [rows.num_rows]:
            cycle = self._visible(rows.slice(start, count))
            start += count
            with self._lock:
                self._cycle = cycle
                self._lock.notify_all()
            self._tell(Update("rows", cycle))

    # ---------------------------------------------------------------- parts

    def _known(self) -> Description:
        if self._description is None:
            raise RemoteError(
                f"nobody knows yet what {self.target.shown} looks like",
                hint="give the builder a table_definition",
            )
        return self._description

    def _visible(self, rows: pa.Table) -> pa.Table:
        names = [c for c in ("_op", "tbname") if c in rows.column_names] + [
            c for c in self.columns if c in rows.column_names
        ]
        shown = rows.select(names)
        if "_op" not in names:
            return shown
        return shown.filter(pc.not_equal(shown.column("_op"), CLEAR))

    def _hidden(self) -> bool:
        return self.options.on_disconnect == "clear" and self.state in (
            "connecting",
            "disconnected",
        )

    def _lost(self, error: PenstockError) -> None:
        was_live = self.state == "live"
        self.error = error
        self._disconnect()
        if self._halt.is_set():
            return
        self._become("disconnected")
        if was_live and self.options.on_disconnect == "clear":
            self._tell(Update("clear"))

    def _fail(self) -> None:
        why = self.error or LinkLost("the link is lost")
        self.error = RemoteError(
            f"{self.target.shown} could not be reached again",
            code="E_RETRY_WINDOW",
            detail=f"{why.code}: {why.message}",
            hint="retryWindowMillis and maxRetries say for how long it is tried",
        )
        self._become("failed")
        self._tell(None)

    def _become(self, state: State) -> None:
        with self._lock:
            if self.state != "failed" or state == "closed":
                self.state = state
            if state == "live":
                self.error = None
            self._lock.notify_all()

    def _disconnect(self) -> None:
        link = self._link
        self._link = None
        if link is not None:
            link.close()

    def _tell(self, update: Update | None) -> None:
        with self._lock:
            listeners = list(self._listeners)
            watchers = list(self._watchers)
            self._lock.notify_all()
        for watcher in watchers:
            watcher.put(update)
        for listener in listeners if update is not None else ():
            assert update is not None
            listener(update)


def snapshot(target: Target, options: Options) -> pa.Table:
    """The rows of this moment, for ever. Raises PenstockError when the other side is not there."""
    left = Left(options.wait_timeout_ms)
    wanted = Wanted(options)
    try:
        with connect_any(target.replicas, timeout=left.step()) as link:
            description = link.resolve(
                target.table, target.query, target.serial, timeout=left.step()
            )
            rows = link.query(wanted.rows(description), description.database, timeout=left.all())
    except PenstockError as error:
        raise left.told(error, target) from error
    return rows.cast(schema_of(wanted.shown(description), description.precision))

"""`RemoteTable`: a table of another deployment as a live object here, which follows it, survives
cuts and says how it is.

A snapshot with its place in the log comes first, then everything behind that place, so nothing is
missed or had twice. What has come is kept as frames and put together when somebody looks: an update
costs what it brings, not what the table holds. A message is applied whole.

Cut off, a table shows no rows (`clear`) or those it had (`retain`); when the link is back it goes
on behind its token and shows all of them again. A table that was dropped and made again over there
is read anew, in one step.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

import polars as pl
import pyarrow as pa

from penstock.errors import PenstockError, RemoteError
from penstock.feeds.cursor import TokenError
from penstock.link.address import LinkLost
from penstock.link.channel import Channel, LinkMessage
from penstock.link.client import Link
from penstock.link.description import Description
from penstock.link.mirror_content import MirrorContent
from penstock.link.mirror_external import Executes, make_external
from penstock.link.mirror_status import MirrorStatus, State
from penstock.link.mirror_view import mirror_view
from penstock.link.pool import connect_any
from penstock.link.remote_request import MirrorOptions, RemoteRequest, RemoteTarget, TimeLeft
from penstock.link.retry_window import RetryWindow
from penstock.link.snapshot import find, read_snapshot, subscribe
from penstock.link.updates import TableUpdate, UpdateFeed
from penstock.notebook.live import Live
from penstock.notebook.markup import SHOWN_ROWS
from penstock.notebook.view import NotebookView
from penstock.runtime import vital

if TYPE_CHECKING:
    import pandas as pd

#: an update cycle without rows empties a blink table
CYCLE_SECONDS = 1.0


class RemoteTable(Live):
    """Use it in a `with`, or `close` it. Reading it is safe from any thread."""

    def __init__(
        self, target: RemoteTarget, options: MirrorOptions, definition: Description | None = None
    ) -> None:
        """`definition`: what it looks like, so that it can be followed before the other side is
        there.
        """
        self.target = target
        self._request = RemoteRequest(options, definition)
        self._lock = threading.Condition()
        self._content = MirrorContent(self._request, target.shown)
        self._feed = UpdateFeed(self._lock)
        self._link: Link | None = None
        self._status = MirrorStatus()
        self._halt = threading.Event()
        self._thread: threading.Thread | None = None

    # ---------------------------------------------------------------- reading

    @property
    def options(self) -> MirrorOptions:
        return self._request.options

    @property
    def columns(self) -> list[str]:
        return self._content.columns

    @property
    def schema(self) -> pa.Schema:
        """Raises RemoteError while nobody knows it."""
        return self._content.schema

    @property
    def state(self) -> State:
        return self._status.state

    @property
    def error(self) -> PenstockError | None:
        """Why it is not live."""
        return self._status.error

    @property
    def reconnects(self) -> int:
        """Links made anew since the start."""
        return self._status.reconnects

    @property
    def attempts(self) -> int:
        """Attempts since the last link that worked."""
        return self._status.attempts

    @property
    def updated_at(self) -> float:
        """Time at which the newest message came, epoch seconds."""
        return self._status.updated_at

    @property
    def stale(self) -> bool:
        """True while its rows are not those of this moment."""
        return self._status.stale

    @property
    def status(self) -> dict[str, Any]:
        """State, errors and times, for people and programs."""
        return self._status.to_dict()

    def to_arrow(self) -> pa.Table:
        """Return the rows as they are now. Raises PenstockError when the table has failed."""
        with self._lock:
            self._status.require_alive()
            if self._hides_rows():
                return self.schema.empty_table()
            if self.options.blink:
                return self._content.cycle()
            description = self._content.description
            frame = self._content.frame()
        return self._content.to_arrow(frame, description)

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

    def make_external(self, connection: Executes, name: str) -> None:
        """Make an external stream *name* of it in the deployment behind *connection*, where SQL,
        windows and views read it from then on.

        Raises:
            PenstockError: that deployment does not reach it, or the table is filtered (WHERE over
                the external stream does that).
        """
        make_external(connection, name, self.target, self._request, self._content)

    # ---------------------------------------------------------------- following

    def on_update(self, listener: Callable[[TableUpdate], None]) -> None:
        """Have *listener* called, on the table's own thread, with everything that happens from now
        on.
        """
        self._feed.listen(listener)

    def updates(self, timeout: float | None = None) -> Iterator[TableUpdate]:
        """Yield what happens from now on, one by one; ends when the table is closed, or when
        nothing came for *timeout* seconds.

        Raises:
            PenstockError: the table has failed.
        """
        for update in self._feed.watch(timeout):
            if update is not None:
                yield update
            else:
                self._status.require_alive()

    def view(self, rows: int = SHOWN_ROWS) -> NotebookView:
        """Return what it looks like: its state, and its newest rows by their times."""
        with self._lock:
            hidden = self._hides_rows()
            return mirror_view(self.target.shown, self.status, self._content, rows, hidden=hidden)

    def _await_change(self, seconds: float) -> bool:
        with self._lock:
            ended = self._lock.wait_for(lambda: self._status.has_ended, seconds)
            self._status.require_alive()
            return not ended

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
        if self._thread is not None:
            self._thread.join(5.0)
        self._become("closed")
        self._feed.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
        channel = None
        if self._request.definition is None:
            left = TimeLeft(self.options.wait_timeout_ms)
            try:
                channel = self._open(left)
            except PenstockError as error:
                self._disconnect()
                raise left.explain(error, self.target) from error
        self._thread = threading.Thread(
            target=self._run, args=(channel,), name=f"remote-{self.target.shown}", daemon=True
        )
        self._thread.start()
        return self

    def _run(self, channel: Channel | None) -> None:
        window = RetryWindow(self.options.retry_window_ms, self.options.max_retries)
        while not self._halt.is_set():
            try:
                channel = channel or self._open(TimeLeft())
                window.begin()
                self._status.attempts = 0
                self._follow(channel)
            except PenstockError as error:
                self._cut_off(error, window)
            except vital.FAULTS as bug:
                message = f"following the table failed: {type(bug).__name__}"
                fault = RemoteError(message, code="E_INTERNAL", detail=str(bug)[:200])
                self._cut_off(fault, window)
            channel = None
            if self._halt.is_set():
                return
            if window.is_over(self._status.attempts):
                self._fail()
                return
            self._halt.wait(window.pause())
            self._status.attempts += 1

    def _open(self, left: TimeLeft) -> Channel:
        """Make a link, read the first rows (or those missed) and subscribe: live when it returns.
        Raises PenstockError.
        """
        self._disconnect()
        link = self._link = connect_any(self.target.replicas, timeout=left.step())
        description = find(link, self.target, left)
        self._request.check(description)
        with self._lock:
            same = self._content.describe(description)
        if same:
            try:
                return self._continue(link, description, left)
            except PenstockError as error:
                if error.code != TokenError.code:
                    raise
        return self._begin(link, description, left)

    def _continue(self, link: Link, description: Description, left: TimeLeft) -> Channel:
        channel = subscribe(
            link, self.target, self._request, description, self._content.token, left
        )
        self._status.reconnects += 1
        self._become("live")
        self._feed.publish(TableUpdate("restored"))
        return channel

    def _begin(self, link: Link, description: Description, left: TimeLeft) -> Channel:
        """Read all rows as of one place of the log, and follow what comes behind it."""
        frames: list[pl.DataFrame] = []
        token = ""
        if self.options.blink:
            channel = subscribe(link, self.target, self._request, description, "latest", left)
        else:
            frames, cursor = read_snapshot(link, self._request, description, left)
            token = f"{description.id}.{cursor.token()}"
            channel = subscribe(link, self.target, self._request, description, token, left)
        with self._lock:
            self._content.reset(frames, token)
        self._status.note_first_rows()
        self._become("live")
        self._feed.publish(TableUpdate("reset"))
        return channel

    def _follow(self, channel: Channel) -> None:
        """Apply messages until the link breaks. Raises PenstockError."""
        blink = self.options.blink
        while not self._halt.is_set():
            message = channel.get(CYCLE_SECONDS if blink else 5.0)
            if message is not None:
                self._apply(message)
            elif blink and self._content.has_cycle:
                with self._lock:
                    self._content.begin_cycle(None)
                self._feed.publish(TableUpdate("reset"))

    def _apply(self, message: LinkMessage) -> None:
        if message.kind == "schema":
            with self._lock:
                self._content.change_schema(message)
            return
        shows_cycles = self.options.blink and message.rows is not None
        if shows_cycles:
            self._show_cycles(message)
        token = message.header.get("token")
        with self._lock:
            self._content.apply(message)
            if token is not None:
                self._content.token = str(token)
            self._status.note_rows()
            self._lock.notify_all()
        if message.rows is None:
            if message.kind in ("delete", "tags"):
                self._feed.publish(TableUpdate("delete"))
        elif not shows_cycles:
            self._feed.publish(TableUpdate("rows", self._content.visible(message.rows)))

    def _show_cycles(self, message: LinkMessage) -> None:
        """Show one cycle of a blink table after the other: rows of one are gone with the next."""
        for cycle in self._content.cycles(message):
            with self._lock:
                self._content.begin_cycle(cycle)
                self._lock.notify_all()
            self._feed.publish(TableUpdate("rows", cycle))

    def _hides_rows(self) -> bool:
        return self.options.on_disconnect == "clear" and self._status.is_cut_off

    def _cut_off(self, error: PenstockError, window: RetryWindow) -> None:
        was_live = self.state == "live"
        if was_live:
            window.note_loss()
        self._status.error = error
        self._disconnect()
        if self._halt.is_set():
            return
        self._become("disconnected")
        if was_live and self.options.on_disconnect == "clear":
            self._feed.publish(TableUpdate("clear"))

    def _fail(self) -> None:
        why = self.error or LinkLost("the link is lost")
        self._status.error = RemoteError(
            f"{self.target.shown} could not be reached again",
            code="E_RETRY_WINDOW",
            detail=f"{why.code}: {why.message}",
            hint="retryWindowMillis and maxRetries say for how long it is tried",
        )
        self._become("failed")
        self._feed.end()

    def _become(self, state: State) -> None:
        with self._lock:
            self._status.become(state)
            self._lock.notify_all()

    def _disconnect(self) -> None:
        link = self._link
        self._link = None
        if link is not None:
            link.close()

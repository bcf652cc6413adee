"""`penstock demo`: bring up a mesh, replay the year, watch the windows come, check every one of
them.

The mesh is one of the demo's own in a directory of its own, so nothing of the user's is touched,
and it is gone afterwards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.client.connection import Connection
from penstock.client.subscribe import Subscription
from penstock.demo import flights
from penstock.demo.streams import STREAMS, DemoStream, expect, mismatches
from penstock.errors import PenstockError

#: rows of one frame to the gateway
FRAME = 2_000
#: columns of a terminal that has room for what each stream is
_WIDE = 120
_TIMES = ("_wstart", "ts")
#: how deep streams stand on streams: hourly, then daily
DEPTH = 2


class DemoFailed(PenstockError):
    code = "E_DEMO"


@dataclass
class Watch:
    """Messages that the demo's own subscribers have got, by stream."""

    messages: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    newest: dict[str, dict[str, object]] = field(default_factory=dict)
    problem: Exception | None = None

    def listen(self, name: str, subscription: Subscription) -> None:
        """Count until the subscription is closed; runs on a thread of its own."""
        try:
            for update in subscription:
                self.messages[name] = self.messages.get(name, 0) + 1
                self.rows[name] = self.rows.get(name, 0) + len(update.items)
                if update.items:
                    self.newest[name] = update.items[-1]
        except Exception as error:
            self.problem = error


@dataclass(frozen=True)
class Outcome:
    rows: int
    windows: int
    notifications: int
    mismatches: int
    seconds: float

    def line(self) -> str:
        return (
            f"demo ok: rows={self.rows} windows={self.windows} notifications={self.notifications} "
            f"mismatches={self.mismatches} seconds={self.seconds:.0f}"
        )


def run(client: Connection, console: Console, out: Path | None = None) -> Outcome:
    """Replay and check against a running mesh.

    Args:
        client: connected as a user who may create databases.
        console: where the live view goes.
        out: a directory for each stream's DDL and final rows.

    Raises:
        DemoFailed: a window is wrong, missing or too many, or a subscriber saw nothing.
    """
    rows = flights.load()
    started = time.monotonic()
    for statement in (*flights.CREATE, *(s.ddl for s in STREAMS)):
        client.execute(statement)
    watch = Watch()
    with _watching(client, watch):
        _replay(client, rows, watch, console)
        found = {s.name: client.query(s.result).to_polars() for s in STREAMS}
        _await_subscribers(watch, {s.name for s in STREAMS})
    seconds = time.monotonic() - started
    wrong = _check(found, rows, console)
    if out is not None:
        _leave(out, found)
    notifications = sum(watch.messages.values())
    outcome = Outcome(
        rows.height, sum(f.height for f in found.values()), notifications, wrong, seconds
    )
    if watch.problem is not None:
        raise DemoFailed("a subscriber was cut off", detail=str(watch.problem))
    _require_right(outcome)
    return outcome


def _require_right(outcome: Outcome) -> None:
    """Raise DemoFailed unless everything came, and all of it is right."""
    if outcome.mismatches:
        raise DemoFailed(
            f"{outcome.mismatches} result rows differ from DuckDB's", detail=outcome.line()
        )
    if not outcome.notifications or not outcome.windows:
        raise DemoFailed("nothing came out", detail=outcome.line())


@contextmanager
def _watching(client: Connection, watch: Watch) -> Iterator[None]:
    """Subscribe to every stream's rows."""
    wanted = [
        (s.name, client.subscribe(f"{flights.DATABASE}.{s.name}", stream=True)) for s in STREAMS
    ]
    for _, subscription in wanted:
        subscription.open()
    threads = [threading.Thread(target=watch.listen, args=pair, daemon=True) for pair in wanted]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for _, subscription in wanted:
            subscription.close()
        for thread in threads:
            thread.join(timeout=5)


def _await_subscribers(watch: Watch, names: set[str], patience: float = 30.0) -> None:
    """The last messages are on their way when the tables are complete."""
    deadline = time.monotonic() + patience
    settled = threading.Event()
    before = -1
    while time.monotonic() < deadline and watch.problem is None:
        count = sum(watch.messages.values())
        if names <= watch.messages.keys() and count == before:
            return
        before = count
        settled.wait(0.3)


def _replay(client: Connection, rows: pl.DataFrame, watch: Watch, console: Console) -> None:
    """Write all rows in time order as fast as the mesh takes them, wait for their windows, and
    close the last ones.
    """
    with (
        _progress(console, watch, rows.height) as advance,
        client.writer(f"{flights.DATABASE}.{flights.TABLE}") as writer,
    ):
        for piece in rows.iter_slices(FRAME):
            writer.write(piece)
            advance(piece.height)
        writer.flush()
        client.drain(flights.DATABASE, depth=DEPTH)
        for stream in STREAMS:
            if stream.flush:
                client.execute(f"FLUSH STREAM {flights.DATABASE}.{stream.name}")
        client.drain(flights.DATABASE, depth=DEPTH)


@contextmanager
def _progress(console: Console, watch: Watch, total: int) -> Iterator[Callable[[int], None]]:
    """Show how far the replay is: live on a terminal, else a line for each tenth and the newest
    windows at the end. Yields what is to be told of rows.
    """
    if not console.is_terminal:
        yield Milestones(console, watch, total).advance
        console.print(view(watch))
        return
    columns = (
        TextColumn("replay"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
    )
    progress = Progress(*columns, console=console)
    task = progress.add_task("rows", total=total)
    wide = console.width >= _WIDE
    with Live(
        console=console,
        refresh_per_second=4,
        get_renderable=lambda: Group(progress, view(watch, wide=wide)),
    ):
        yield lambda count: progress.advance(task, count)


class Milestones:
    """A line for each tenth of the rows: what a pipe shows of the progress."""

    def __init__(self, console: Console, watch: Watch, total: int) -> None:
        self._console = console
        self._watch = watch
        self._total = total
        self._done = 0

    def advance(self, count: int) -> None:
        before = self._done * 10 // self._total
        self._done += count
        if self._done * 10 // self._total == before:
            return
        self._console.print(
            f"replayed {self._done:,} of {self._total:,} rows;"
            f" {sum(self._watch.rows.values()):,} result rows so far",
            highlight=False,
        )


def view(watch: Watch, *, wide: bool = False) -> Table:
    """Return the newest window of every stream; it fits into 80 columns unless it may be *wide*."""
    table = Table(title="windows as they arrive", box=None, pad_edge=False)
    for heading in ("stream", *(("what",) if wide else ()), "rows", "time", "newest"):
        # what does not fit into one line goes on in the next
        table.add_column(
            heading,
            justify="right" if heading == "rows" else "left",
            no_wrap=heading != "newest",
        )
    for stream in STREAMS:
        newest = watch.newest.get(stream.name, {})
        table.add_row(
            stream.name,
            *((stream.title,) if wide else ()),
            str(watch.rows.get(stream.name, 0)),
            _time_of(newest),
            _values_of(newest),
        )
    return table


def _time_of(row: dict[str, object]) -> str:
    """Return when a window begins, or when a row is."""
    ticks = next((row[name] for name in _TIMES if row.get(name) is not None), None)
    if not isinstance(ticks, int):
        return ""
    return datetime.fromtimestamp(ticks / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _values_of(row: dict[str, object]) -> str:
    """Return the values of a row: what it is about, which is text, comes first."""
    shown = {k: v for k, v in row.items() if k not in (*_TIMES, "op", "tbname", "group_id")}
    ordered = sorted(shown.items(), key=lambda item: not isinstance(item[1], str))
    return ", ".join(f"{k}={round(v, 2) if isinstance(v, float) else v}" for k, v in ordered)


def _check(found: dict[str, pl.DataFrame], rows: pl.DataFrame, console: Console) -> int:
    """Compare every stream's table with DuckDB's; shows the first differences."""
    wrong = 0
    for stream in STREAMS:
        differing = mismatches(stream, found[stream.name], expect(stream, rows))
        console.print(
            f"{stream.name}: {found[stream.name].height} rows, {differing.height} differ",
            highlight=False,
        )
        if differing.height:
            console.print(str(differing.head(5)), highlight=False, markup=False)
        wrong += differing.height
    return wrong


def _leave(out: Path, found: dict[str, pl.DataFrame]) -> None:
    """Each stream's DDL and final rows, for others to check."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "streams.sql").write_text(
        "".join(f"{_one_line(s)};\n" for s in STREAMS), encoding="utf-8"
    )
    for name, frame in found.items():
        frame.write_parquet(out / f"{name}.parquet")


def _one_line(stream: DemoStream) -> str:
    return " ".join(stream.ddl.split())

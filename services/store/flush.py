"""From tail to segments: sort, judge freshness, write, commit the position, and later merge small
files and remove them.

Crash safety: segments are written first, the position last. What a crash leaves beyond the position
is not counted by readers and is overwritten by the same flush tried again (same first offset) or
removed at the next start.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import structlog

from penstock.catalog.stored import StoredNames
from penstock.rows.copies import has_copies
from penstock.storage import segments
from penstock.storage.segments import META, Position, Segment
from penstock.types import TIME_LIMITS, in_range
from services.store.tail import Frozen

log = structlog.get_logger(__name__)

#: segments of one directory are merged once so many of the same size class lie side by side. A
#: small query costs more the more files it opens; with four of them and classes of a factor of four
#: there are half as many as with eight, and a row is written five times instead of four
MERGE_WIDTH = 4
#: seconds that files stay beside the merged one which has taken their place: a reader that has
#: listed them, or has only heard of the position before, still needs them
LINGER = 600.0


@dataclass(frozen=True)
class SegmentLayout:
    """Layout of a table's segments. Names are those in segments."""

    table_id: int
    time_column: str
    keys: tuple[str, ...]
    precision: str
    timestamps: tuple[str, ...]
    #: names in segments of columns that bear another one now, or once did
    #: (`penstock.catalog.stored`)
    stored: StoredNames = field(default_factory=dict, hash=False)


@dataclass
class Newest:
    """Largest time per child table of one (table, partition): tells whether rows can replace
    earlier ones.
    """

    frame: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(schema={"tbname": pl.String, "_max": pl.Int64})
    )

    @classmethod
    def of(cls, found: Sequence[Segment], time_column: str) -> Newest:
        rows = segments.read(found, time_column=time_column, columns=["tbname", time_column])
        if rows is None:
            return cls()
        return cls(rows.group_by("tbname").agg(_max=pl.col(time_column).cast(pl.Int64).max()))

    def fresh(self, rows: pl.DataFrame, layout: SegmentLayout) -> bool:
        """Tell whether every row of *rows* (times in ticks) has a key that no other row has had."""
        if not rows["_op"].eq(0).all():
            return False
        if has_copies(rows, layout.keys):
            return False
        least = rows.group_by("tbname").agg(_min=pl.col(layout.time_column).min())
        return bool(
            least.join(self.frame, on="tbname")
            .select((pl.col("_min") > pl.col("_max")).all())
            .item()
        )

    def add(self, rows: pl.DataFrame, time_column: str) -> None:
        new = rows.group_by("tbname").agg(_max=pl.col(time_column).max())
        self.frame = pl.concat([self.frame, new]).group_by("tbname").agg(pl.col("_max").max())


def flush(
    root: str,
    topic: str,
    partition: int,
    owner: int,
    frozen: Frozen,
    layouts: dict[int, SegmentLayout],
    newest: dict[int, Newest],
) -> Position:
    """Write the frozen rows of every table as one segment each and commit. Tables unknown by now
    (dropped) are left out.
    """
    for table_id, frames in frozen.frames.items():
        layout = layouts.get(table_id)
        if layout is None:
            continue
        rows = pl.concat(frames, how="diagonal_relaxed").sort([*layout.keys, "_offset", "_row"])
        where = segments.directory(root, table_id, partition, topic)
        if table_id not in newest:
            earlier = segments.segments(where, frozen.first)
            newest[table_id] = Newest.of(earlier, layout.time_column)
        _write_segment(where, rows, layout, frozen, newest[table_id])
    position = Position(
        topic,
        partition,
        owner,
        frozen.next,
        frozen.producers,
        frozen.deletes,
        frozen.tags,
        frozen.over,
    )
    position.save(root)
    return position


def _write_segment(
    where: str, rows: pl.DataFrame, layout: SegmentLayout, frozen: Frozen, newest: Newest
) -> None:
    """Write a table's frozen rows, in the order of their keys, and take them in to *newest*."""
    times = rows.get_column(layout.time_column).to_numpy()
    segments.write(
        where,
        to_wire(rows, layout).to_arrow(),
        layout.time_column,
        frozen.first,
        frozen.next - 1,
        fresh=newest.fresh(rows, layout),
        low=int(times.min()),
        high=int(times.max()),
    )
    newest.add(rows, layout.time_column)


def to_wire(rows: pl.DataFrame, layout: SegmentLayout) -> pl.DataFrame:
    """Ticks → timestamps of the database's precision; what is no time of it is NULL."""
    limits = TIME_LIMITS[layout.precision]
    rows = rows.with_columns(
        in_range(rows.get_column(c), limits) for c in layout.timestamps if c in rows.columns
    )
    return rows.with_columns(
        pl.col(c).cast(pl.Datetime(layout.precision))  # type: ignore[arg-type]
        for c in layout.timestamps
        if c in rows.columns
    )


def to_ticks(rows: pl.DataFrame, layout: SegmentLayout) -> pl.DataFrame:
    return rows.with_columns(
        pl.col(c).cast(pl.Datetime(layout.precision)).cast(pl.Int64)  # type: ignore[arg-type]
        for c in layout.timestamps
        if c in rows.columns
    )


def merge(
    root: str,
    layout: SegmentLayout,
    partition: int,
    below: int,
    max_rows: int = 4_000_000,
    topic: str = "",
) -> int:
    """Merge runs of small neighbouring segments into one. All versions stay, so history reads are
    not affected.

    Returns how many files were replaced. The merged file covers its parts' offsets, so a reader
    that lists both counts only it; they go with `remove_merged`.
    """
    where = segments.directory(root, layout.table_id, partition, topic)
    found = segments.segments(where, below)
    replaced = 0
    for run in _runs(found, max_rows):
        rows = segments.read(run, time_column=layout.time_column)
        if rows is None:
            continue
        rows = rows.sort([*layout.keys, "_offset", "_row"])
        low = min(s.low for s in run)
        high = max(s.high for s in run)
        segments.write(
            where,
            rows.to_arrow(),
            layout.time_column,
            run[0].first,
            run[-1].last,
            fresh=all(s.fresh for s in run),
            low=low,
            high=high,
        )
        replaced += len(run)
    return replaced


def remove_merged(
    root: str, table_id: int, partition: int, topic: str = "", linger: float = LINGER
) -> int:
    """Remove files that a merged one took the place of *linger* seconds ago. Returns how many."""
    removed = 0
    for part, whole in segments.find_merged(segments.directory(root, table_id, partition, topic)):
        if time.time() - whole.stat().st_mtime >= linger:
            part.unlink(missing_ok=True)
            removed += 1
    return removed


def _runs(found: list[Segment], max_rows: int) -> list[list[Segment]]:
    """Return runs of neighbours of the same size class, each below *max_rows* rows: of MERGE_WIDTH
    or more, and shorter ones that have no room for the next.
    """
    runs: list[list[Segment]] = []
    run: list[Segment] = []
    for segment in found:
        same = not run or _size_class(segment) == _size_class(run[0])
        fits = sum(s.rows for s in run) + segment.rows <= max_rows
        if same and fits:
            run.append(segment)
            continue
        if len(run) >= (MERGE_WIDTH if fits else 2):
            runs.append(run)
        run = [segment]
    return [*runs, run] if len(run) >= MERGE_WIDTH else runs


def _size_class(segment: Segment) -> int:
    return max(segment.rows, 1).bit_length() // 2


def expire(root: str, table_id: int, partition: int, before: int, topic: str = "") -> int:
    """KEEP: remove segments all of whose rows are older than *before* (ticks)."""
    where = segments.directory(root, table_id, partition, topic)
    gone = [s for s in segments.segments(where) if s.high < before]
    for part, whole in segments.find_merged(where):
        if any(whole == s.path for s in gone):
            part.unlink(missing_ok=True)
    for segment in gone:
        segment.path.unlink(missing_ok=True)
    return len(gone)


def remove_leftovers(root: str, table_id: int, partition: int, below: int, topic: str = "") -> None:
    """At start: files of a flush that was never committed, beyond the position's next offset
    *below*.
    """
    folder = Path(segments.directory(root, table_id, partition, topic))
    for path in folder.glob("*.parquet") if folder.is_dir() else ():
        if int(path.stem.split("-")[1]) >= below:
            log.warning("removing a segment that was never committed", path=str(path))
            path.unlink(missing_ok=True)
    for path in folder.glob("*.tmp") if folder.is_dir() else ():
        path.unlink(missing_ok=True)


__all__ = [
    "META",
    "SegmentLayout",
    "Newest",
    "expire",
    "flush",
    "merge",
    "remove_leftovers",
    "remove_merged",
    "to_ticks",
    "to_wire",
]

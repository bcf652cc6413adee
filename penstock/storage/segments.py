"""Segments: every table's rows on disk, as sorted Parquet files that name the log offsets they
cover.

One directory per (table, source partition). A file `<first>-<last>.parquet` holds all versions of
the table's rows from the records first..last of the topic-partition, sorted by (tbname, time,
_offset, _row). What is committed is said by one small JSON file per topic-partition (`Position`): a
file beyond its `next` offset is a leftover of a crash and does not count. The store is the only
writer; the operator's history and SELECT are readers.

Columns: the table's columns and tags under their stored names (`penstock.catalog.stored`; real
timestamps), `tbname`, and
    _op      Int8    0 upsert, 1 delete of the key, 2 merge (NULL columns keep their earlier value)
    _offset  Int64   offset of the record
    _row     UInt32  place of the row in its record
so that (_offset, _row) orders the versions of a row, and a reader can see the table as it was at
any offset.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock import names
from penstock.errors import StateError
from penstock.rows.versions import DELETE, MERGE, carried

META = ("_op", "_offset", "_row")
FORMAT_VERSION = 1
_SUFFIX = ".parquet"
#: rows of a row group: who reads one table reads a few groups, and who reads all has enough of them
#: for every core
_GROUP_ROWS = 65_536
#: nanoseconds without a change after which a list of a directory is remembered
_SETTLED = 2_000_000_000


@dataclass(frozen=True)
class RangeDelete:
    """`DELETE FROM … WHERE low <= ts <= high` (ticks), as of the control record at `offset`;
    `tables` None: all children.
    """

    table_id: int
    offset: int
    tables: tuple[str, ...] | None
    low: int
    high: int


@dataclass(frozen=True)
class Position:
    """What of one topic-partition is in segments: all records below `next`. `owner`:
    `Catalog.topic_owner` of the topic.
    """

    topic: str
    partition: int
    owner: int = 0
    next: int = 0
    #: highest (offset, ordinal) per producer among them, for readers that go on from here
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    deletes: tuple[RangeDelete, ...] = ()
    #: tags set after rows were written: table id → child table → tag → value; they count for all
    #: rows of the child
    tags: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    #: whether the partition takes rows: nothing when it does, `close` when streams' results only,
    #: `end` and the offset when it has ended
    over: str = ""
    version: int = FORMAT_VERSION

    def save(self, root: str) -> None:
        path = _position_path(root, self.topic, self.partition, self.owner)
        path.parent.mkdir(parents=True, exist_ok=True)
        tmp = path.with_suffix(f".{os.getpid()}.tmp")
        with open(tmp, "w", encoding="utf-8") as out:
            json.dump(asdict(self), out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(tmp, path)

    @classmethod
    def load(cls, root: str, topic: str, partition: int, owner: int) -> Position:
        """The committed position; the beginning when there is none.

        Raises:
            StateError: the file is damaged or newer than this build.
        """
        path = _position_path(root, topic, partition, owner)
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls(topic, partition, owner)
        except ValueError as error:
            raise StateError(
                f"segment position {path} is damaged",
                detail=str(error),
                hint="restore it from a backup",
            ) from None
        if raw["version"] > FORMAT_VERSION:
            raise StateError(
                f"segment position {path} is of version {raw['version']}",
                hint="it was written by a newer Penstock: upgrade this one",
            )
        deletes = tuple(
            RangeDelete(
                d["table_id"],
                d["offset"],
                None if d["tables"] is None else tuple(d["tables"]),
                d["low"],
                d["high"],
            )
            for d in raw["deletes"]
        )
        producers = {k: (v[0], v[1]) for k, v in raw["producers"].items()}
        tags = {int(table): children for table, children in raw.get("tags", {}).items()}
        return cls(
            topic,
            partition,
            owner,
            raw["next"],
            producers,
            deletes,
            tags,
            raw.get("over", ""),
            raw["version"],
        )


def _position_path(root: str, topic: str, partition: int, owner: int) -> Path:
    return Path(root) / "positions" / f"{topic}-{partition}.{owner}.json"


@dataclass(frozen=True)
class Segment:
    """One file. `low`/`high`: smallest and largest time in ticks; `fresh`: no row of it can replace
    an earlier one.
    """

    path: Path
    first: int
    last: int
    rows: int
    low: int
    high: int
    fresh: bool

    def overlaps(self, low: int | None, high: int | None) -> bool:
        """Tell if it may hold times from *low* to *high*; None: without an end."""
        return (high is None or self.low <= high) and (low is None or self.high >= low)


def write(
    directory: str,
    frame: pa.Table,
    time_column: str,
    first: int,
    last: int,
    *,
    fresh: bool,
    low: int,
    high: int,
) -> Segment:
    """Write one segment (rows already sorted) atomically and durably; replaces one of the same
    name.
    """
    target = Path(directory) / f"{first:020d}-{last:020d}{_SUFFIX}"
    target.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "version": FORMAT_VERSION,
        "low": low,
        "high": high,
        "fresh": fresh,
        "rows": frame.num_rows,
        "time": time_column,
    }
    schema = frame.schema.with_metadata(
        {**(frame.schema.metadata or {}), b"penstock": json.dumps(facts).encode()}
    )
    tmp = target.with_suffix(f".{os.getpid()}.tmp")
    pq.write_table(
        frame.cast(schema),
        tmp,
        compression="zstd",
        row_group_size=_GROUP_ROWS,
        write_statistics=_columns_with_bounds(frame),
    )
    with open(tmp, "rb") as handle:
        os.fsync(handle.fileno())
    os.replace(tmp, target)
    return Segment(target, first, last, frame.num_rows, low, high, fresh)


def _columns_with_bounds(frame: pa.Table) -> list[str]:
    """Return the columns of which a file says the least and the greatest value. They leave NaN out,
    and a reader that believes them skips rows with NaN: so of such a column they say nothing.
    """
    return [
        name
        for name, column in zip(frame.column_names, frame.columns, strict=True)
        if not (pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py())
    ]


def segments(directory: str, below: int | None = None) -> list[Segment]:
    """Segments of one (table, partition) in offset order; only those whole below offset *below* (a
    position's `next`).

    Of files that were merged only the merged one, unless it reaches beyond *below*. What is listed
    stays for a while: see `services.store.flush.LINGER`.
    """
    try:
        changed = os.stat(directory).st_mtime_ns
    except FileNotFoundError:
        return []
    # another file may come within the same tick of the file system's clock
    settled = time.time_ns() - changed > _SETTLED
    return list((_list_once if settled else _list)(directory, below, changed))


def _list(directory: str, below: int | None, changed: int) -> tuple[Segment, ...]:
    found = _files(directory, below)
    return tuple(_open(path, *span) for span, path, whole in found if whole is None)


#: `_list` of a directory that has not changed since *changed*
_list_once = lru_cache(maxsize=4096)(_list)


def find_merged(directory: str) -> list[tuple[Path, Path]]:
    """Find files whose rows are in a merged one, too, and that one."""
    return [(path, whole) for _, path, whole in _files(directory) if whole is not None]


def _files(
    directory: str, below: int | None = None
) -> list[tuple[tuple[int, int], Path, Path | None]]:
    """(first, last), the file, and the file whose offsets cover its own, if there is one; in offset
    order.
    """
    found = [
        ((int(path.stem[:20]), int(path.stem[21:])), path)
        for path in Path(directory).glob(f"*{_SUFFIX}")
    ]
    made: list[tuple[tuple[int, int], Path, Path | None]] = []
    outer = None
    reach = -1
    for span, path in sorted(found, key=lambda f: (f[0][0], -f[0][1])):
        if below is not None and span[1] >= below:
            continue
        covered = span[1] <= reach
        made.append((span, path, outer if covered else None))
        if not covered:
            outer = path
            reach = span[1]
    return made


_known: dict[tuple[str, int], Segment] = {}


def _open(path: Path, first: int, last: int) -> Segment:
    """Footers never change once written: each is read once a process."""
    key = (str(path), path.stat().st_mtime_ns)
    if key not in _known:
        try:
            facts = json.loads((pq.read_schema(path).metadata or {})[b"penstock"])
        except (OSError, pa.ArrowInvalid, KeyError, ValueError) as error:
            raise StateError(
                f"segment {path} can't be read", detail=str(error), hint="restore it from a backup"
            ) from None
        _known[key] = Segment(
            path, first, last, facts["rows"], facts["low"], facts["high"], facts["fresh"]
        )
    return _known[key]


def read(
    found: Sequence[Segment],
    *,
    time_column: str,
    low: int | None = None,
    high: int | None = None,
    tables: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> pl.DataFrame | None:
    """Read all versions of rows with low <= time <= high (ticks) of the given segments. Return None
    when there are none.
    """
    frames = []
    for segment in found:
        if not segment.overlaps(low, high):
            continue
        lazy = pl.scan_parquet(segment.path)
        if tables is not None:
            lazy = lazy.filter(pl.col("tbname").is_in(list(tables)))
        ticks = pl.col(time_column).cast(pl.Int64)
        if low is not None:
            lazy = lazy.filter(ticks >= low)
        if high is not None:
            lazy = lazy.filter(ticks <= high)
        frames.append(lazy if columns is None else lazy.select(columns))
    if not frames:
        return None
    return pl.concat(frames, how="diagonal_relaxed").collect()


def times(segment: Segment, time_column: str) -> Iterator[npt.NDArray[np.int64]]:
    """Times (ticks) of all versions of rows of a segment, a piece at a time."""
    with pq.ParquetFile(segment.path) as file:
        for batch in file.iter_batches(columns=[time_column]):
            yield batch.column(0).cast(pa.int64()).to_numpy()


def versions(segment: Segment, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """These *columns* of all versions of rows of a segment, a piece at a time; those that it is too
    old for are left out.
    """
    with pq.ParquetFile(segment.path) as file:
        there = set(file.schema_arrow.names)
        for batch in file.iter_batches(columns=[c for c in columns if c in there]):
            yield pl.from_arrow(batch)  # type: ignore[misc]


def live(
    rows: pl.DataFrame, keys: Sequence[str], deletes: Sequence[RangeDelete] = ()
) -> pl.DataFrame:
    """The rows that count: per key the last version by (_offset, _row), merges applied, deletes
    gone.

    Args:
        rows: any versions, with META columns.
        keys: tbname, the time column[, the composite key].
        deletes: range deletes of this table; each hits only versions before its own offset. Times
            must be ticks (Int64) in `rows` when deletes are given.
    """
    if rows.is_empty():
        return rows
    rows = _in_order(rows, keys, deletes)
    if rows["_op"].eq(MERGE).any():
        values = [c for c in rows.columns if c not in keys and c not in META]
        rows = rows.with_columns(_life=(pl.col("_op") < MERGE).cum_sum())
        rows = carried(rows, values, [*keys, "_life"]).drop("_life")
    rows = rows.unique(subset=list(keys), keep="last", maintain_order=True)
    return rows.filter(pl.col("_op") != DELETE)


def drop_deleted(
    rows: pl.DataFrame, keys: Sequence[str], deletes: Sequence[RangeDelete] = ()
) -> pl.DataFrame:
    """Return all versions that no delete has taken, by key and then by (_offset, _row), as they
    were written; arguments as of `live`.
    """
    if rows.is_empty():
        return rows
    later_deletes = (pl.col("_op") == DELETE).cum_sum(reverse=True).over(list(keys))
    return _in_order(rows, keys, deletes).filter(later_deletes == 0)


def _in_order(
    rows: pl.DataFrame, keys: Sequence[str], deletes: Sequence[RangeDelete]
) -> pl.DataFrame:
    """The versions that no range delete hits, by key and then by (_offset, _row)."""
    for delete in deletes:
        hit = (pl.col("_offset") < delete.offset) & pl.col(keys[1]).is_between(
            delete.low, delete.high
        )
        if delete.tables is not None:
            hit &= pl.col("tbname").is_in(list(delete.tables))
        rows = rows.filter(~hit)
    return rows.sort([*keys, "_offset", "_row"])


def directory(root: str, table_id: int, partition: int, topic: str = "") -> str:
    """Where the segments of a table are; *topic* says of which generation."""
    return names.segment_directory(root, table_id, partition, names.generation(topic))

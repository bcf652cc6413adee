"""Live state in Redis that comes from rows: the latest row of each child table, and child tables
first seen in rows.

Both can be rebuilt from segments and log, so losing Redis costs a rebuild, never data. Work is per
changed child table and per interval, not per row: many rows of one child table between two writes
cost one line.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl
import redis

from penstock import names
from penstock.catalog.model import Table
from penstock.coordination import redis_link
from penstock.rows.versions import CLEAR, DELETE, UPSERT

_CHUNK = 5_000
#: so many rows of a table are gathered, and twice as many as it has children, before each child's
#: latest is looked for among them
_GATHERED = 10_000


@dataclass
class _Known:
    #: child table → time of its latest row
    last: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(schema={"tbname": pl.String, "_last": pl.Int64})
    )
    children: set[str] = field(default_factory=set)
    loaded: bool = False


@dataclass
class _Pending:
    """Rows of a table of which the latest of each child are to be written."""

    table: Table
    frames: list[pl.DataFrame] = field(default_factory=list)
    rows: int = 0
    most: int = _GATHERED

    def add(self, rows: pl.DataFrame) -> None:
        self.frames.append(rows)
        self.rows += rows.height
        if self.rows > self.most:
            self.frames = [self.newest()]
            self.rows = self.frames[0].height
            self.most = 2 * self.rows + _GATHERED

    def newest(self) -> pl.DataFrame:
        """The latest row of each child."""
        rows = pl.concat(self.frames, how="diagonal_relaxed")
        return rows.group_by("tbname", maintain_order=False).agg(
            pl.all().sort_by(self.table.time_column, maintain_order=True).last()
        )


class LatestRows:
    """Collects what changed (`note`) and writes it when asked (`write`). One thread."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._known: dict[int, _Known] = {}
        self._pending: dict[int, _Pending] = {}

    def note(self, table: Table, rows: pl.DataFrame) -> None:
        """Rows in log order (input layout, under stored names). Of many only each child's latest
        are kept until the next `write`.
        """
        operations = rows.get_column("_op")
        if (operations != UPSERT).any():
            rows = rows.filter(~operations.is_in([DELETE, CLEAR]))
        if rows.is_empty():
            return
        self._pending.setdefault(table.id, _Pending(table)).add(rows)

    def replace(
        self, table: Table, children: list[str], rows: pl.DataFrame, *, dropped: bool = False
    ) -> None:
        """After a delete: `rows` are the latest rows that are left of *children*; those without one
        lose theirs.

        Args:
            dropped: the child tables themselves have gone. Later rows make them known again.
        """
        known = self._load(table)
        if table.id in self._pending:
            pending = self._pending[table.id]
            pending.frames = [f.filter(~pl.col("tbname").is_in(children)) for f in pending.frames]
        if dropped:
            known.children.difference_update(children)
        known.last = known.last.filter(~pl.col("tbname").is_in(children))
        key = names.last_row(table.database, table.name)
        for start in range(0, len(children), _CHUNK):
            self._redis.hdel(key, *children[start : start + _CHUNK])
        self.note(table, rows)

    def write(self) -> None:
        """Bring Redis up to date. What could not be written stays pending.

        Raises:
            redis.RedisError: try again later.
        """
        for table_id, pending in list(self._pending.items()):
            table = pending.table
            rows = pending.newest()
            known = self._load(table)
            time = table.time_column
            newer = rows.join(known.last, on="tbname", how="left").filter(
                pl.col("_last").is_null() | (pl.col(time) >= pl.col("_last"))
            )
            self._write_rows(table, newer)
            self._write_children(table, known, rows)
            taken = newer.select("tbname", _last=pl.col(time))
            known.last = (
                pl.concat([known.last, taken]).group_by("tbname").agg(pl.col("_last").max())
            )
            del self._pending[table_id]

    def _write_rows(self, table: Table, rows: pl.DataFrame) -> None:
        if rows.is_empty():
            return
        values = [n for held in table.stored_names.values() for n in held if n in rows.columns]
        texts = rows.select(pl.struct(_jsonable(rows, values)).struct.json_encode().alias("j"))[
            "j"
        ].to_list()
        key = names.last_row(table.database, table.name)
        pairs = list(zip(rows["tbname"].to_list(), texts, strict=True))
        for start in range(0, len(pairs), _CHUNK):
            self._redis.hset(key, mapping=dict(pairs[start : start + _CHUNK]))

    def _write_children(self, table: Table, known: _Known, rows: pl.DataFrame) -> None:
        if table.kind != "stable":
            return
        new = rows.filter(~pl.col("tbname").is_in(list(known.children))) if known.children else rows
        if new.is_empty():
            return
        tags = [n for c in table.tags for n in table.stored_names[c.name] if n in new.columns]
        texts = (
            new.select(pl.struct(_jsonable(new, tags)).struct.json_encode().alias("j"))[
                "j"
            ].to_list()
            if tags
            else ["{}"] * new.height
        )
        children = new["tbname"].to_list()
        for some in redis_link.chunks(list(zip(children, texts, strict=True))):
            pipe = self._redis.pipeline(transaction=False)
            for child, text in some:
                pipe.hsetnx(names.children(table.id), child, text)
            pipe.execute()
        known.children.update(children)

    def _load(self, table: Table) -> _Known:
        """What Redis had when this process first met the table."""
        known = self._known.setdefault(table.id, _Known())
        if not known.loaded:
            if table.kind == "stable":
                known.children = {
                    _text(k)
                    for k, _ in redis_link.hash_items(self._redis, names.children(table.id))
                }
            stored = dict(
                redis_link.hash_items(self._redis, names.last_row(table.database, table.name))
            )
            if stored:
                texts = pl.DataFrame(
                    {"tbname": [_text(k) for k in stored], "j": [_text(v) for v in stored.values()]}
                )
                times = (
                    texts["j"]
                    .str.json_decode(pl.Struct({table.time_column: pl.Int64}))
                    .struct.field(table.time_column)
                )
                known.last = texts.select("tbname").with_columns(_last=times)
            known.loaded = True
        return known

    def tables(self) -> set[int]:
        """Tables of which something is remembered here."""
        return {*self._known, *self._pending}

    def forget(self, table_id: int) -> None:
        """The table was dropped."""
        self._known.pop(table_id, None)
        self._pending.pop(table_id, None)


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode()


def _jsonable(rows: pl.DataFrame, columns: list[str]) -> list[pl.Expr]:
    """JSON has no bytes and no decimals: bytes as hex, decimals as text."""
    made = []
    for name in columns:
        kind = rows.schema[name]
        if kind == pl.Binary:
            made.append(pl.col(name).bin.encode("hex"))
        elif isinstance(kind, pl.Decimal):
            made.append(pl.col(name).cast(pl.String))
        else:
            made.append(pl.col(name))
    return made

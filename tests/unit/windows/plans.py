"""Plans and rows for the tests of kernels, written by hand so that they need no planner."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import polars as pl

from penstock.rows.versions import DELETE
from penstock.sql.plan import (
    Aggregate,
    Column,
    Duration,
    Interval,
    Key,
    Output,
    Source,
    StreamPlan,
    Target,
    Trigger,
    TriggerKind,
)
from penstock.types import ColumnType
from penstock.windows.kernel import Emission
from penstock.windows.rows.counted import standing

BIGINT, DOUBLE, INT, TIMESTAMP = (ColumnType(k) for k in ("BIGINT", "DOUBLE", "INT", "TIMESTAMP"))
TEXT = ColumnType("VARCHAR", 20)
TBNAME = ColumnType("VARCHAR", 192)
GROUP_ID = ColumnType("BIGINT UNSIGNED")
BY_TABLE = (Key("tname", "tbname", TBNAME),)
BY_TAG = (Key("loc", "loc", TEXT),)
COLUMNS = (Column("ts", TIMESTAMP), Column("v", DOUBLE), Column("i", INT), Column("s", TEXT))
TAGS = (Column("loc", TEXT),)

_TYPES = {"count": BIGINT, "hyperloglog": BIGINT}
_OWN = {"v": DOUBLE, "i": INT, "s": TEXT, "ts": TIMESTAMP}


def aggregate(
    number: int,
    function: str,
    sql: str | None = "v",
    *,
    of: str | None = None,
    params: tuple[float, ...] = (),
) -> Aggregate:
    own = function in ("min", "max", "first", "last", "last_row", "companion")
    kind = (
        _OWN[sql or ""]
        if own
        else BIGINT
        if function == "sum" and sql == "i"
        else _TYPES.get(function, DOUBLE)
    )
    return Aggregate(f"_a{number}", function, sql, kind, params, of)


def window_plan(
    functions: Sequence[tuple[str, str | None]] = (("count", None), ("sum", "v"), ("max", "v")),
    *,
    aggregates: tuple[Aggregate, ...] = (),
    keys: tuple[Key, ...] = BY_TABLE,
    size: str = "10s",
    sliding: str | None = None,
    offset: str | None = None,
    trigger: TriggerKind = "at_once",
    watermark: str = "0a",
    source: str = "stable",
    **more: object,
) -> StreamPlan:
    aggregates = aggregates or tuple(aggregate(n, f, sql) for n, (f, sql) in enumerate(functions))
    outputs = (
        Output("_wstart", "_wstart", TIMESTAMP),
        *(Output(f"c{a.name}", a.name, a.type) for a in aggregates),
    )
    target = Target(
        2,
        "db",
        "out",
        tuple(Column(o.name, o.type) for o in outputs),
        (Column("group_id", GROUP_ID), *(Column(k.alias, k.type) for k in keys)),
        tuple(o.name for o in outputs),
        ("group_id", *range(len(keys))),
    )
    return StreamPlan(
        7,
        "db",
        "s",
        "",
        Source(1, "db", "st", source, COLUMNS, TAGS, "ms"),
        "scan",
        more.pop("where", None),
        keys,  # type: ignore[arg-type]
        Interval(duration(size), duration(sliding or size), duration(offset) if offset else None),
        Trigger(trigger),
        aggregates,
        outputs,
        target,
        watermark=duration(watermark),
        **more,  # type: ignore[arg-type]
    )


def duration(text: str) -> Duration:
    return Duration(int(text[:-1]), text[-1])  # type: ignore[arg-type]


Row = tuple[str, int, float | None]
SCHEMA = {
    "_step": pl.UInt32(),
    "_offset": pl.Int64(),
    "_now": pl.Int64(),
    "_op": pl.Int8(),
    "tbname": pl.String(),
    "ts": pl.Int64(),
    "v": pl.Float64(),
    "i": pl.Int32(),
    "s": pl.String(),
    "loc": pl.String(),
}


def frame(writes: Iterable[Sequence[Row]], first: int = 0, op: int = 0) -> pl.DataFrame:
    """Writes of (table, ts, v); `i` is v cut to a whole number, `s` its text, `loc` the table's
    last letter but one.
    """
    lines = [
        (
            n,
            n,
            ts,
            op,
            table,
            ts,
            v,
            None if v is None else int(v),
            None if v is None else f"s{v}",
            f"l{len(table) % 2}",
        )
        for n, write in enumerate(writes, first)
        for table, ts, v in write
    ]
    return pl.DataFrame(lines, schema=SCHEMA, orient="row")


@dataclass
class MemoryHistory:
    """What the source holds before the call that is being worked on; the last version of a (table,
    time) wins.
    """

    rows: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))
    versions: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=SCHEMA))

    def add(self, rows: pl.DataFrame) -> None:
        self.versions = standing(pl.concat([self.versions, rows]), ["tbname", "ts"])
        both = pl.concat([self.rows, rows]).unique(
            ["tbname", "ts"], keep="last", maintain_order=True
        )
        self.rows = both.filter(pl.col("_op") != DELETE)

    def delete(self, low: int, high: int, tables: Sequence[str] | None) -> None:
        chosen = pl.col("ts").is_between(low, high) & (
            pl.col("tbname").is_in(list(tables)) if tables is not None else True
        )
        self.rows, self.versions = self.rows.filter(~chosen), self.versions.filter(~chosen)

    def fetch(self, low: int, high: int, tables: Sequence[str] | None = None) -> pl.DataFrame:
        chosen = pl.col("ts").is_between(low, high) & (
            pl.col("tbname").is_in(list(tables)) if tables is not None else True
        )
        return self.rows.filter(chosen).sort("tbname", "ts")

    def fetch_versions(
        self, low: int, high: int, tables: Sequence[str] | None = None
    ) -> pl.DataFrame:
        chosen = pl.col("ts").is_between(low, high) & (
            pl.col("tbname").is_in(list(tables)) if tables is not None else True
        )
        return self.versions.filter(chosen).sort("tbname", "ts", maintain_order=True)


@dataclass
class Table:
    """The target table as its readers see it after some emissions."""

    time: str = "_wstart"
    rows: dict[tuple[object, ...], tuple[object, ...]] = field(default_factory=dict)
    late: int = 0

    def take(self, emission: Emission) -> None:
        self.late += emission.late.height if emission.late is not None else 0
        if emission.rows is None:
            return
        keys = list(
            zip(emission.rows["tbname"].to_list(), emission.rows[self.time].to_list(), strict=True)
        )
        assert len(set(keys)) == len(keys), "one line per target row and call"
        for key, op, row in zip(
            keys,
            emission.rows["_op"].to_list(),
            emission.rows.drop("_op", "tbname").rows(),
            strict=True,
        ):
            if op == DELETE:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row

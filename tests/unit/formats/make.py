"""`python -m tests.unit.formats.make`: writes a file of each format as this build does, once per
version; never over one that is there.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa

from penstock.catalog import entries
from penstock.catalog.model import Child, Database, Snode, StreamEntry, Table, TableVersion
from penstock.codec import TableCodec
from penstock.records import (
    CatalogRecord,
    ControlRecord,
    DeadLetter,
    EventsRecord,
    ExchangeRecord,
    Manifest,
    encode,
)
from penstock.sql.plan import (
    Aggregate,
    Column,
    Duration,
    Interval,
    Key,
    Notify,
    Output,
    Source,
    StreamPlan,
    Target,
    Trigger,
)
from penstock.storage import backup_list, segments, statefile
from penstock.storage.backup_list import Backup
from penstock.storage.segments import Position, RangeDelete
from penstock.storage.vault import Vault
from penstock.types import ColumnType
from penstock.windows.kernel import Delta
from spark_jobs.replay import Published
from spark_jobs.state import Snapshot, StateFiles

DATA = Path(__file__).parent / "data"
COLUMNS = (
    Column("ts", ColumnType("TIMESTAMP")),
    Column("v", ColumnType("DOUBLE")),
    Column("n", ColumnType("INT")),
)
TABLE = Table(
    100,
    "d",
    "m",
    "stable",
    "in.d",
    4,
    "ms",
    (TableVersion(101, COLUMNS, (Column("g", ColumnType("VARCHAR", 8)),)),),
)
#: a stream without a result table
TOLD = StreamPlan(
    stream_id=104,
    database="d",
    name="s",
    sql="CREATE STREAM s FROM m PARTITION BY g INTERVAL(1s) NOTIFY ON ('WINDOW_CLOSE')",
    source=Source(100, "d", "m", "stable", COLUMNS, (), "ms"),
    path="exchange",
    where=None,
    keys=(Key("g", "g", ColumnType("VARCHAR", 8)),),
    window=Interval(Duration(1, "s"), Duration(1, "s")),
    trigger=Trigger("window_close"),
    aggregates=(Aggregate("_a0", "count", None, ColumnType("BIGINT")),),
    outputs=(Output("count(*)", "_a0", ColumnType("BIGINT")),),
    target=Target(
        0,
        "d",
        "s",
        (Column("count(*)", ColumnType("BIGINT")),),
        (),
        ("count(*)",),
        (),
        stored=False,
    ),
    notify=Notify((), ("WINDOW_CLOSE",)),
)
ENTRIES = (
    Database(99, "d", "us", Duration(3, "d"), 2, replica=2),
    TABLE,
    Child(102, "d", 100, "c1", ("x",)),
    Snode(103, 1, 5),
    StreamEntry(104, TOLD, created=5, maker="root"),
)
FRAME = pl.DataFrame({"k": [1, 2], "n": [10, 20]})
FULL = Snapshot(
    10,
    1_000,
    {"in.d:0": 7},
    {"s:1:in.x:0": (9, 1)},
    [Published("s:1", "in.d", 2, 5, 9, 1)],
    {7: ("{plan}", "running")},
    {7: [Delta({"x": FRAME}, True)]},
    {"b in.x": ["x:0"]},
)
DELTA = Snapshot(
    20, 2_000, {"in.d:1": 8}, {"s:1:in.x:0": (19, 0)}, [], {}, {7: [Delta({"x": FRAME}, False)]}
)
ROWS = pl.DataFrame(
    {
        "tbname": ["a", "b"],
        "ts": [1_700_000_000_000, 1_700_000_000_001],
        "v": [1.5, None],
        "n": [1, 2],
        "g": ["x", "y"],
    }
)
POSITION = Position(
    "in.d",
    1,
    99,
    42,
    {"s:1:in.d:0": (41, 2)},
    (RangeDelete(100, 12, ("a",), 1, 2), RangeDelete(100, 13, None, 3, 4)),
    {100: {"a": {"g": "z"}}},
)
RECORDS = (
    ControlRecord(
        "delete",
        id="i",
        table=3,
        tables=("a", "b"),
        low=-1,
        high=5,
        body="{}",
        producer="p",
        offset=3,
        ordinal=1,
    ),
    ExchangeRecord(7, "x:7:in.d:0", 1, 2, b"rows", 3, False),
    EventsRecord(7, "d.s", "s:7:in.d:0", 1, 2, "[]", trace="t"),
    DeadLetter("in.d", 1, 2, "scan", "E_ROW", "why", 5, 7, b"v"),
    Manifest("in.d", 3, 4, "/c", {"in.d:0": 9}, ("f",)),
    CatalogRecord("database", 1, "d", 2, "{}"),
)


def _new(name: str, data: bytes) -> None:
    path = DATA / name
    if path.exists():
        print(f"{name}: kept")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"{name}: written")


def main() -> None:
    scratch = DATA / "scratch"
    state = StateFiles(str(scratch / "state"))
    state.save(FULL, full=True)
    state.save(DELTA, full=False)
    for path in (scratch / "state").iterdir():
        _new(f"state.v{statefile.VERSION}/{path.name}", path.read_bytes())
    for number, value in enumerate(entries.to_value(e, 4) for e in ENTRIES):
        _new(f"catalog.v1/{number}.avro", value)
    for record in RECORDS:
        _new(f"records.v1/{type(record).__name__}.avro", encode(record))
    _new(
        "rows.v1.avro",
        next(v for _, v in TableCodec(TABLE).encode_partitioned(ROWS.cast({"n": pl.Int32}), 1)),
    )
    POSITION.save(str(scratch))
    _new(
        f"position.v{segments.FORMAT_VERSION}.json",
        next((scratch / "positions").iterdir()).read_bytes(),
    )
    rows = pa.table(
        {
            "tbname": ["a"],
            "ts": [5],
            "_op": pa.array([0], pa.int8()),
            "_offset": [3],
            "_row": pa.array([0], pa.uint32()),
        }
    )
    made = segments.write(str(scratch / "segment"), rows, "ts", 3, 3, fresh=True, low=5, high=5)
    _new(f"segment.v{segments.FORMAT_VERSION}/{made.path.name}", made.path.read_bytes())
    kept = Vault(str(scratch / "vault"))
    kept.publish(Backup("q.1", 1000, 2, (kept.put("q.1", "state/a", b"bytes"),), {"n": 1}))
    for path in (p for p in (scratch / "vault").rglob("*") if p.is_file()):
        _new(
            f"vault.v{backup_list.VERSION}/{path.relative_to(scratch / 'vault')}", path.read_bytes()
        )
    shutil.rmtree(scratch)
    print(
        json.dumps(
            sorted(str(p.relative_to(DATA)) for p in DATA.rglob("*") if p.is_file()), indent=1
        )
    )


if __name__ == "__main__":
    main()

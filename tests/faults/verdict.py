"""Compares what producers were told, what subscribers got, and what is in the log."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from penstock import names
from penstock.bus import Admin, Reader
from penstock.catalog.reader import CatalogReader
from penstock.codec import TableCodec, schema_ids
from services.tables.stamp import Fence, parse_trace, unpack


@dataclass(frozen=True)
class Verdict:
    """`disorder`: rows that came in another order than their ids', or ids left out."""

    acked: int
    lost: int
    dup: int
    disorder: int
    two_leaders: int

    @property
    def good(self) -> bool:
        return not (self.lost or self.dup or self.disorder or self.two_leaders) and self.acked > 0


def verdict(bootstrap: str, out: Path, table: str) -> Verdict:
    """Read the files in *out* and the table's log."""
    acked = {tuple(row) for path in sorted(out.glob("acks-*.csv")) for row in _lines(path)}
    lost = dup = disorder = 0
    for path in sorted(out.glob("rows-*.csv")):
        rows = [(int(row[0]), (row[1], row[2])) for row in _lines(path)]
        got = Counter(key for _, key in rows)
        lost = max(lost, sum(key not in got for key in acked))
        dup += sum(n - 1 for n in got.values())
        disorder += sum(row != i for i, (row, _) in enumerate(rows))
        last: dict[str, int] = {}
        for _, (producer, number) in rows:
            disorder += int(number) <= last.get(producer, -1)
            last[producer] = int(number)
    return Verdict(len(acked), lost, dup, disorder, two_leaders(bootstrap, table))


def _lines(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def two_leaders(bootstrap: str, table: str) -> int:
    """Epochs of the log in which rows of two leaders count."""
    with CatalogReader(bootstrap, client_id="verdict-catalog") as catalog:
        database, _, name = table.partition(".")
        found = catalog.catalog.table(database, name)
        assert found is not None
        codec = TableCodec(found)
        topic = found.topic
    end = Admin(bootstrap).end_offsets([(topic, 0)])[topic, 0]
    start = Admin(bootstrap).start_offsets([(topic, 0)])[topic, 0]
    leaders: dict[int, set[str]] = {}
    fence = Fence()
    at = start
    with Reader(bootstrap, {(topic, 0): start}, client_id="verdict") as reader:
        while at < end:
            for batch in reader.read(1_000, 1.0):
                values = [
                    v
                    for v, i in zip(batch.values, schema_ids(batch.values), strict=True)
                    if i == found.schema_id
                ]
                for offset, trace, producer in (
                    codec.decode(values).records.select("offset", "trace", "producer").iter_rows()
                ):
                    assert producer == names.producer_of_replicas(found.id)
                    leader = parse_trace(trace).leader
                    if fence.admits(offset, leader):
                        leaders.setdefault(unpack(offset)[0], set()).add(leader)
                at = batch.next_offset
    return sum(len(who) > 1 for who in leaders.values())

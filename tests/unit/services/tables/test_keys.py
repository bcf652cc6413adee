from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.catalog.model import KeyRule
from services.tables.keys import TableKeys, Taker
from tests.unit.services.tables.kit import NOW, Log, Node, stream_table

Row = tuple[int, int | None]


def batch(rows: list[Row]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "k": pa.array([k for k, _ in rows], pa.int64()),
            "t": pa.array([t for _, t in rows], pa.int64()),
        }
    )


def plain(rule: KeyRule, writes: list[list[Row]]) -> list[tuple[Row, str]]:
    """What the rules say, row by row."""
    taken: list[tuple[Row, str]] = []
    for write in writes:
        for i, row in enumerate(write):
            same = [r for r, _ in taken if r[0] == row[0]]
            time = -(2**63) if row[1] is None else row[1]
            if rule == "first" and same:
                continue
            if rule == "latest":
                later = [
                    -(2**63) if r[1] is None else r[1] for r in write[i + 1 :] if r[0] == row[0]
                ]
                earlier = [-(2**63) if r[1] is None else r[1] for r in write[:i] if r[0] == row[0]]
                known = max((-(2**63) if r[1] is None else r[1] for r in same), default=None)
                if (
                    any(t > time for t in later)
                    or any(t >= time for t in earlier)
                    or (known is not None and time <= known)
                ):
                    continue
            taken.append((row, "U" if same else "N"))
    return taken


@given(
    some.sampled_from(["first", "latest", "changelog"]),
    some.lists(
        some.lists(some.tuples(some.integers(0, 3), some.none() | some.integers(0, 5)), max_size=5),
        max_size=6,
    ),
    some.lists(some.tuples(some.integers(1, 3), some.booleans()), min_size=6, max_size=6),
)
def test_d38_the_rules_hold_however_writes_come_together_and_whenever_they_settle(
    rule: KeyRule, writes: list[list[Row]], steps: list[tuple[int, bool]]
) -> None:
    known = TableKeys(["k"], rule, ["t"] if rule == "latest" else [])
    taker = Taker(known)
    found: list[tuple[Row, str]] = []
    sent: list[pa.RecordBatch] = []
    row = settled = 0
    at = 0
    for together, settles in steps:
        part = writes[at : at + together]
        at += together
        rows = [r for w in part for r in w]
        borders = [sum(len(w) for w in part[:i]) for i in range(len(part) + 1)]
        places, states = taker.take(known.list(batch(rows)), borders)
        taken = [rows[i] for i in places]
        found += zip(taken, states, strict=True)
        sent.append(batch(taken))
        taker.note_sent(len(sent), known.list(sent[-1]))
        while settles and settled < len(sent):
            known.note(sent[settled], row)
            row += sent[settled].num_rows
            settled += 1
            taker.settle(settled)
    assert found == plain(rule, writes[:at])


def test_keys_of_rows_that_are_gone_are_forgotten() -> None:
    keys = TableKeys(["k"], "changelog")
    keys.note(batch([(1, 0), (2, 0), (1, 0)]), 0)
    keys.forget_before(2)
    assert list(keys.rows) == [1]


@pytest.mark.parametrize("rule", ["first", "latest", "changelog"])
def test_d38_keys_that_are_times_are_the_same_in_copies_and_writes(
    tmp_path: Path, rule: KeyRule
) -> None:
    more = {"latest": {"time_columns": ("n",)}, "changelog": {"status_column": "sym"}, "first": {}}[
        rule
    ]
    table = stream_table(keys=("ts",), key_rule=rule, **more)
    loop = asyncio.new_event_loop()
    try:
        node = Node("A", table, Log(table.topic), tmp_path, loop)
        node.lead(1)
        node.settle()
        for i, n in enumerate((5, 4, 6)):
            data = pa.table(
                {
                    "ts": pa.array([NOW // 10**6], pa.timestamp("ms", "UTC")),
                    "n": pa.array([n], pa.int64()),
                }
            )
            node.write("p", i + 1, data)
            node.settle()
        assert node.numbers() == {"first": [5], "latest": [5, 6], "changelog": [5, 4, 6]}[rule]
    finally:
        loop.close()

"""How results, events and dead letters of one stream leave a processor."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from penstock import names
from penstock.bus import Delivery
from penstock.errors import SchemaError
from penstock.records import DeadLetter, EventsRecord, decode
from penstock.runtime.health import SECONDS
from spark_jobs.output import Outbox
from spark_jobs.processor.stats import Stats
from spark_jobs.processor.stream_output import StreamOutput
from spark_jobs.replay import Replay
from tests.unit.spark_jobs.processor_kit import T0, TOPIC, Mesh, values_of

_STREAM = "CREATE STREAM s INTO o AS SELECT _wstart ws, count(*) n FROM m PARTITION BY tbname INTERVAL(10a)"


class _Made:
    def __init__(self, mesh: Mesh, topic: str = TOPIC) -> None:
        self.mesh = mesh
        self.stats = Stats()
        self.plan = mesh.stream(1002, _STREAM)
        self.outbox = Outbox(mesh.worker.publisher, Replay())
        self.output = StreamOutput(mesh.worker, self.outbox, topic, 3, self.plan, self.stats)

    def letters(self) -> list[DeadLetter]:
        return [decode(DeadLetter, v) for v in values_of(self.mesh.log, names.DEAD_LETTER)]


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    return Mesh(tmp_path, monkeypatch)


def _rows(*lines: tuple[int, int, int], **more: Any) -> pl.DataFrame:
    """Source rows of (offset, append time, a)."""
    made = pl.DataFrame(
        [(0, offset, now, 0, "t1", T0, a) for offset, now, a in lines],
        schema=["_step", "_offset", "_now", "_op", "tbname", "ts", "a"],
        orient="row",
    )
    return made.with_columns(**{name: pl.lit(value) for name, value in more.items()})


def test_results_are_numbered_in_each_partition(mesh):
    made = _Made(mesh)
    sent: list[tuple[Any, ...]] = []
    outbox: Any = made.outbox
    outbox.send = lambda *given: sent.append(given)
    there = print
    made.output.send("out", 9, [(0, b"a"), (2, b"b"), (0, b"c")], there)
    producer = names.stream_producer(1002, TOPIC, 3)
    assert sent == [
        (producer, "out", 0, 9, 0, b"a", there),
        (producer, "out", 2, 9, 0, b"b", there),
        (producer, "out", 0, 9, 1, b"c", there),
    ]


def test_a_result_table_that_is_gone_is_said(mesh):
    made = _Made(mesh)
    assert made.output.target().table.id == 1003
    mesh.worker.catalog.catalog.remove(1003)
    with pytest.raises(SchemaError) as gone:
        made.output.target()
    assert gone.value.code == "E_TARGET_GONE"


def test_a_delivery_is_timed_from_its_oldest_row(mesh):
    made = _Made(mesh)
    there = made.output.time_delivery(T0)
    there(Delivery(TOPIC, 0, 0, T0 + 1500))
    there(Delivery(TOPIC, 0, 1, T0 - 5))  # the broker's clock is behind
    assert made.stats.followed_seconds == 1.5
    assert made.stats.followed[0] == 1
    assert sum(made.stats.followed) == 2
    assert SECONDS[made.stats.followed.index(1, 1)] >= 1.5


def test_times_of_other_precisions_are_ticks(mesh):
    made = _Made(mesh)
    made.output.plan = replace(made.plan, source=replace(made.plan.source, precision="ns"))
    made.output.time_delivery(T0 * 1_000_000)(Delivery(TOPIC, 0, 0, T0 + 2))
    assert made.stats.followed_seconds == 0.002


def test_events_of_a_chunk_are_one_record(mesh):
    made = _Made(mesh)
    made.output.send_events([{"eventType": "WINDOW_OPEN", "x": 1}], 5, 9, "trace")
    [(place, values)] = [(p, v) for p, v in mesh.log.records.items() if p[0] == names.EVENTS]
    assert place[1] == 1002 % names.BUILT_IN_TOPICS[names.EVENTS]
    record = decode(EventsRecord, values[0][1])
    assert (record.stream, record.stream_name) == (1002, "db.s")
    assert (record.from_offset, record.offset, record.trace) == (5, 9, "trace")
    assert json.loads(record.events) == [{"eventType": "WINDOW_OPEN", "x": 1}]


# -------------------------------------------------------------------- rows that come to nothing


def test_late_rows_are_kept_whole(mesh):
    made = _Made(mesh)
    made.output.bury_late(_rows((5, T0, 1), (6, T0 + 1, 2), _late=True), 9)
    assert made.stats.late == 2
    [letter] = made.letters()
    assert (letter.code, letter.offset, letter.time) == ("E_LATE", 9, T0)
    assert (letter.topic, letter.partition, letter.stream) == (TOPIC, 3, 1002)
    lines = [json.loads(line) for line in (letter.value or b"").splitlines()]
    assert [line["a"] for line in lines] == [1, 2]
    assert not {"_step", "_late"} & set(lines[0])


def test_many_late_rows_fill_several_letters(mesh):
    made = _Made(mesh)
    long = "x" * (DeadLetter.MAX_VALUE // 3)
    made.output.bury_late(_rows(*((n, T0, n) for n in range(5)), s=long), 9)
    letters = made.letters()
    sizes = [len((letter.value or b"").splitlines()) for letter in letters]
    assert sizes == [2, 2, 1]
    assert letters[0].reason.startswith("2 rows")
    assert all(len(letter.value or b"") <= DeadLetter.MAX_VALUE for letter in letters)


def test_a_row_larger_than_a_letter_has_one_of_its_own(mesh):
    made = _Made(mesh)
    made.output.bury_late(_rows((1, T0, 1), (2, T0, 2), s="x" * DeadLetter.MAX_VALUE), 9)
    assert len(made.letters()) == 2


def test_rows_that_failed_are_buried_record_by_record(mesh):
    made = _Made(mesh)
    rows = _rows((5, T0, 1), (5, T0, 2), (7, T0 + 9, 3), _reason="division by zero")
    made.output.bury(rows, 9)
    assert (made.stats.failed, made.stats.error) == (3, "division by zero")
    first, second = made.letters()
    assert (first.code, first.offset, first.time) == ("E_EXPRESSION", 5, T0)
    assert first.reason == "2 rows failed: division by zero"
    assert (second.offset, second.time) == (7, T0 + 9)


def test_what_failed_in_a_result_counts_for_the_end_of_its_chunk(mesh):
    made = _Made(mesh)
    made.outbox.time = T0 + 5
    made.output.bury(pl.DataFrame({"tbname": ["r"], "b": [b"\x01\xff"], "_reason": ["why"]}), 9)
    [letter] = made.letters()
    assert (letter.offset, letter.time) == (9, T0 + 5)
    assert letter.reason.startswith("1 results failed: why. Results cannot be sent again")
    assert "RECALCULATE STREAM db.s" in letter.reason
    assert json.loads(letter.value or b"")["b"] == "01ff"  # bytes are hex, as in SQL


def test_rows_and_results_that_fail_together_are_told_apart(mesh):
    made = _Made(mesh)
    made.outbox.time = T0 + 5
    result = pl.DataFrame({"tbname": ["r"], "_wstart": [T0], "_wend": [T0 + 10], "_reason": ["b"]})
    rows = _rows((5, T0, 1), _reason="a")
    made.output.bury(pl.concat([rows, result], how="diagonal"), 9)
    assert made.stats.failed == 2
    row, window = made.letters()
    assert (row.offset, row.time) == (5, T0)
    assert json.loads(row.value or b"") == {
        "_offset": 5,
        "_op": 0,
        "tbname": "t1",
        "ts": T0,
        "a": 1,
        "_reason": "a",
    }
    assert (window.offset, window.time) == (9, T0 + 5)
    told = json.loads(window.value or b"")
    assert (told["tbname"], told["_wstart"], told["_wend"]) == ("r", T0, T0 + 10)
    assert "_op" not in told


def test_rows_of_before_the_stream_have_no_place_of_their_own(mesh):
    made = _Made(mesh)
    made.outbox.time = T0 + 5
    rows = _rows((-7, T0, 1), _reason="why").with_columns(_now=pl.lit(None, pl.Int64))
    made.output.bury(rows, 9)
    [letter] = made.letters()
    assert (letter.offset, letter.time) == (9, T0 + 5)


def test_offsets_behind_the_exchange_are_those_of_another_topic(mesh):
    made = _Made(mesh, names.EXCHANGE)
    made.output.bury(_rows((5, T0, 1), _reason="why"), 9)
    assert [letter.offset for letter in made.letters()] == [9]


def test_behind_the_exchange_a_letter_keeps_what_was_sent(mesh):
    made = _Made(mesh, names.EXCHANGE)
    # the plan does not read `a`: it was not sent, and its NULL is no value
    made.output.bury(_rows((5, T0, 1), _reason="why").with_columns(a=None), 9)
    [letter] = made.letters()
    assert set(json.loads(letter.value or b"")) == {"_offset", "_op", "tbname", "ts", "_reason"}


def test_rows_that_failed_are_kept_whole(mesh):
    made = _Made(mesh)
    long = "x" * (DeadLetter.MAX_VALUE // 3)
    rows = _rows(*((5, T0, n) for n in range(150)), _reason="why")
    made.output.bury(rows, 9)
    [letter] = made.letters()
    assert letter.reason.startswith("150 rows")
    assert len((letter.value or b"").splitlines()) == 150
    made.output.bury(rows.head(3).with_columns(_reason=pl.lit(long)), 9)
    counts = [len((one.value or b"").splitlines()) for one in made.letters()[1:]]
    assert counts == [2, 1]

"""Partition processors as Spark's tasks use them, over a log in memory: streams, state, death and
takeover.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock import names
from penstock.records import ControlRecord, DeadLetter, EventsRecord, decode
from tests.unit.spark_jobs.processor_kit import T0, TOPIC, Mesh, values_of

BY_TABLE = "CREATE STREAM s INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM m PARTITION BY tbname INTERVAL(10a)"
BY_TAG = (
    "CREATE STREAM x INTO p AS SELECT _wstart ws, count(*) n FROM m PARTITION BY g INTERVAL(10a)"
)
FILTER = (
    "CREATE STREAM f TRIGGER AT_ONCE INTO q AS SELECT ts, a FROM m WHERE a > 2 PARTITION BY tbname"
)
FILLED = "CREATE STREAM h FILL_HISTORY 1 INTO r AS SELECT _wstart ws, count(*) n, sum(a) s FROM m PARTITION BY tbname INTERVAL(10a)"
ROWS = [(f"t{i % 3}", 4 * i, i % 5, i % 2) for i in range(12)]


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    return Mesh(tmp_path, monkeypatch)


def expected() -> list[tuple[object, ...]]:
    """What BY_TABLE gives of ROWS: the windows that a later row of their table has closed."""
    found: dict[tuple[int, str], list[int]] = {}
    for name, time, a, _ in ROWS:
        found.setdefault((time // 10 * 10, name), []).append(a)
    last = {name: max(w for w, n in found if n == name) for _, name in found}
    return sorted(
        (T0 + w, len(values), sum(values)) for (w, n), values in found.items() if w < last[n]
    )


@pytest.mark.parametrize("most", [1, 2, 5, 1000])
def test_streams_over_one_partition_give_the_same_however_records_come(
    mesh: Mesh, most: int
) -> None:
    mesh.stream(1000, BY_TABLE)
    mesh.stream(1100, FILTER)
    mesh.rows(*ROWS)
    mesh.run(most)
    assert sorted(mesh.results("o")) == expected()
    assert sorted(mesh.results("q")) == [(T0 + t, a) for _, t, a, _ in ROWS if a > 2]
    mesh.close()


@pytest.mark.parametrize("saved", [0, 3, 7])
@pytest.mark.parametrize("most", [1, 4])
def test_whoever_comes_after_a_death_publishes_each_position_once(
    mesh: Mesh, saved: int, most: int
) -> None:
    mesh.stream(1000, BY_TABLE)
    mesh.stream(1100, FILTER)
    mesh.stream(1200, BY_TAG)
    mesh.rows(*ROWS)
    for i in range(8):
        mesh.feed(most=most)
        if i == saved:
            mesh.save()
    mesh.die()
    mesh.run(1000)
    assert sorted(mesh.results("o")) == expected()
    assert sorted(mesh.results("q")) == [(T0 + t, a) for _, t, a, _ in ROWS if a > 2]
    by_tag = mesh.results("p")
    mesh.close()
    mesh.run()
    assert mesh.results("p") == by_tag and by_tag
    mesh.close()


def told_of(mesh: Mesh) -> list[tuple[str, int, int]]:
    """(window, start, n) of all events of windows in the log, in order of window."""
    found = [decode(EventsRecord, value) for value in values_of(mesh.log, names.EVENTS)]
    positions = [(r.producer, r.offset, r.ordinal) for r in found]
    assert len(set(positions)) == len(positions), "a position was published twice"
    return sorted(
        (event["windowId"], event["windowStart"], event["result"]["n"])
        for record in found
        for event in json.loads(record.events)
    )


@pytest.mark.parametrize("by", ["tbname", "g"])
def test_events_of_a_stream_without_a_table_are_told_once_also_after_a_death(
    mesh: Mesh, by: str
) -> None:
    mesh.stream(
        1000,
        f"CREATE STREAM s AS SELECT count(*) n FROM m PARTITION BY {by} INTERVAL(10a)"
        " NOTIFY ON ('WINDOW_CLOSE')",
    )
    mesh.rows(*ROWS)
    mesh.run()
    written = len(mesh.log.records[TOPIC, 0])
    told = told_of(mesh)
    assert told
    if by == "tbname":
        assert sorted((start, n) for _, start, n in told) == [(s, n) for s, n, _ in expected()]
    mesh.log.records.pop((names.EVENTS, 1000 % names.BUILT_IN_TOPICS[names.EVENTS]))
    mesh.die()
    for i in range(8):
        mesh.run(1 if i < 6 else 1000)
        if i == 3:
            mesh.save()
    mesh.die()
    mesh.run()
    assert told_of(mesh) == told
    assert len(mesh.log.records[TOPIC, 0]) == written, "results are written into no table"
    mesh.close()


def test_history_is_filled_once_and_what_comes_meanwhile_waits(mesh: Mesh) -> None:
    mesh.rows(*ROWS[:9])
    mesh.feed()
    mesh.stream(1000, FILLED)
    mesh.rows(*ROWS[9:])
    mesh.run(2)
    # windows that were open when history ended are published when they close, too
    assert set(mesh.results("r")) == set(expected())
    mesh.worker.wait_for_reports()
    status = mesh.worker.memory_redis.hashes[names.stream_status(1000)]
    assert status[f"{TOPIC}:0"] == "9" and names.filling(TOPIC, 0) not in status
    mesh.close()


def test_a_death_while_history_is_filled_loses_and_doubles_nothing(mesh: Mesh) -> None:
    mesh.rows(*ROWS[:9])
    mesh.stream(1000, FILLED)
    mesh.rows(*ROWS[9:])
    mesh.feed(most=12)
    mesh.save()
    mesh.feed(most=2)
    mesh.die()
    mesh.run()
    assert set(mesh.results("r")) == set(expected())
    mesh.close()


def test_controls_take_effect_where_they_stand(mesh: Mesh) -> None:
    mesh.stream(1100, FILTER)
    mesh.rows(("t1", 0, 3, 0))
    mesh.control(ControlRecord("pause", stream=1100))
    mesh.rows(("t1", 1, 4, 0))
    mesh.control(ControlRecord("resume", stream=1100))
    mesh.control(ControlRecord("barrier", id="b"))
    mesh.rows(("t1", 2, 5, 0))
    mesh.control(ControlRecord("stop", stream=1100, body="enough"))
    mesh.rows(("t1", 3, 6, 0))
    mesh.control(ControlRecord("stream_off", stream=1100))
    mesh.run()
    assert sorted(a for _, a in mesh.results("q")) == [3, 4, 5]
    mesh.worker.wait_for_reports()
    hashes = mesh.worker.memory_redis.hashes
    assert hashes[names.barrier("b")] == {
        f"scan:{TOPIC}:0": "5",
        **{f"exchange:penstock.exchange:{p}": "0" for p in range(4)},
    }
    assert "enough" in hashes[names.stream_status(1100)][f"{names.FAILED}{TOPIC}:0"]
    mesh.close()


def test_what_cannot_be_used_is_a_dead_letter(mesh: Mesh) -> None:
    mesh.stream(1100, FILTER)
    mesh.log.append(TOPIC, 0, b"no frame")
    mesh.log.append(TOPIC, 0, b"\x00\x00\x00\x00\x64junk")
    mesh.rows(("t1", 40 * 86_400_000, 3, 0), ("t1", 0, 4, 0))
    mesh.run()
    letters = [decode(DeadLetter, v) for v in values_of(mesh.log, names.DEAD_LETTER)]
    assert [(d.code, d.offset) for d in letters] == [
        ("E_UNKNOWN_SCHEMA", 1),
        ("E_MALFORMED", 2),
        ("E_TOO_FAR_AHEAD", 3),
    ]
    assert [a for _, a in mesh.results("q")] == [4]
    mesh.close()


def test_the_time_of_the_record_at_work_is_known_to_dead_letters(mesh: Mesh) -> None:
    mesh.rows(*ROWS)
    mesh.control(ControlRecord("tick", time=T0))
    mesh.run()
    assert mesh.processor(TOPIC, 0).outbox.time == mesh.log.records[TOPIC, 0][-1][0]
    mesh.close()


def test_records_that_spark_leaves_out_are_read_from_the_log(mesh: Mesh) -> None:
    mesh.stream(1100, FILTER)
    mesh.rows(*ROWS)
    mesh.feed(most=2)
    mesh.positions[TOPIC, 0] = 8
    mesh.run()
    assert sorted(mesh.results("q")) == [(T0 + t, a) for _, t, a, _ in ROWS if a > 2]
    mesh.close()

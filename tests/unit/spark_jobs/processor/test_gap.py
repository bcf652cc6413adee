"""Records that Spark has left out are read from the log, all of them or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import StateError
from spark_jobs.processor.gap import read_gap
from tests.unit.spark_jobs.processor_kit import TOPIC, Mesh


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mesh:
    made = Mesh(tmp_path, monkeypatch)
    made.rows(*((f"t{n}", n, n, 0) for n in range(6)))
    return made


def _read(mesh: Mesh, start: int, until: int) -> list[int]:
    parts = list(read_gap(mesh.worker, TOPIC, 0, start, until))
    stored = mesh.log.records[TOPIC, 0]
    for part in parts:
        assert (part.topic, part.partition) == (TOPIC, 0)
        assert part.values == [stored[o][1] for o in part.offsets]
        assert part.timestamps.tolist() == [stored[o][0] for o in part.offsets]
        assert part.ids.tolist() == [100] * len(part)
    return [int(o) for part in parts for o in part.offsets]


def test_a_gap_is_read_from_its_first_to_its_last_record(mesh):
    assert _read(mesh, 1, 4) == [1, 2, 3]
    assert _read(mesh, 0, 6) == [0, 1, 2, 3, 4, 5]
    assert _read(mesh, 3, 3) == []


def test_a_gap_may_come_in_pieces(mesh):
    mesh.worker.settings = mesh.worker.settings.model_copy(update={"unit_records": 2})
    assert [len(p) for p in read_gap(mesh.worker, TOPIC, 0, 0, 5)] == [2, 2, 1]


def test_records_that_the_log_has_dropped_are_not_made_up(mesh, monkeypatch):
    monkeypatch.setattr(mesh.log, "start_offsets", lambda places: dict.fromkeys(places, 3))
    with pytest.raises(StateError, match=r"records 1\.\.2 are needed but no longer in the log"):
        _read(mesh, 1, 5)


def test_a_log_that_ends_before_the_gap_does_cannot_be_read(mesh):
    with pytest.raises(StateError, match=r"records 6\.\.7 cannot be read"):
        _read(mesh, 4, 8)

"""State files: chains, torn files, versions, ownership."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from penstock.errors import StateError
from penstock.windows.kernel import Delta
from spark_jobs.replay import Published
from spark_jobs.state import Snapshot, StateFiles


def frame(*values: int) -> pl.DataFrame:
    return pl.DataFrame({"k": list(values), "n": [v * 10 for v in values]})


def snapshot(position: int, *values: int, full: bool) -> Snapshot:
    return Snapshot(
        position,
        position * 1000,
        ends={f"t:{position}": position},
        seen={"s:1": (position, 0)},
        streams={7: ("{plan}", "running")} if full else {},
        deltas={7: [Delta({"x": frame(*values)}, full)]},
    )


def test_nothing_is_there_at_first(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path / "s"))
    assert files.load() is None
    assert files.full_due


def test_a_chain_comes_back_merged(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path))
    files.save(snapshot(10, 1, full=True), full=True)
    files.save(snapshot(20, 2, full=False), full=False)
    state = StateFiles(str(tmp_path)).load()
    assert state is not None
    assert (state.next, state.time) == (20, 20_000)
    assert state.ends == {"t:10": 10, "t:20": 20}
    assert state.seen == {"s:1": (20, 0)}
    assert state.streams == {7: ("{plan}", "running")}
    assert [d.full for d in state.deltas[7]] == [True, False]
    assert [d.frames["x"]["k"].to_list() for d in state.deltas[7]] == [[1], [2]]


def test_a_stream_that_is_gone_stays_gone(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path))
    files.save(snapshot(10, 1, full=True), full=True)
    files.save(Snapshot(20, streams={7: None}), full=False)
    state = StateFiles(str(tmp_path)).load()
    assert state is not None
    assert not state.streams
    assert not state.deltas


def test_pending_positions_survive(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path))
    pending = [Published("s:1", "t", 2, 5, 9, 1)]
    files.save(Snapshot(7, pending=pending, waiting={"b in.x": ["x:0"]}), full=True)
    state = StateFiles(str(tmp_path)).load()
    assert state is not None
    assert state.pending == pending
    assert state.waiting == {"b in.x": ["x:0"]}


@pytest.mark.parametrize("damage", ["torn", "flipped", "empty", "gone"])
def test_a_damaged_file_gives_way_to_the_one_before(tmp_path: Path, damage: str) -> None:
    files = StateFiles(str(tmp_path))
    files.save(snapshot(10, 1, full=True), full=True)
    files.save(snapshot(20, 2, full=False), full=False)
    files.save(snapshot(30, 3, full=False), full=False)
    victim = tmp_path / f"p{20:020d}.delta"
    data = victim.read_bytes()
    if damage == "gone":
        victim.unlink()
    else:
        victim.write_bytes(
            {"torn": data[: len(data) // 2], "flipped": data[:-9] + b"X" + data[-8:], "empty": b""}[
                damage
            ]
        )
    state = StateFiles(str(tmp_path)).load()
    assert state is not None
    assert state.next == 10


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path))
    files.save(snapshot(10, 1, full=True), full=True)
    path = tmp_path / f"p{10:020d}.full"
    path.write_bytes(path.read_bytes().replace(b"STATE 1 ", b"STATE 9 ", 1))
    with pytest.raises(StateError, match="version 9"):
        StateFiles(str(tmp_path)).load()


def test_full_files_prune_what_no_chain_needs(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path))
    for position in range(10, 100, 10):
        files.save(
            snapshot(position, position, full=position in (10, 40, 70)),
            full=position in (10, 40, 70),
        )
    left = sorted(int(p.name[1:21]) for p in tmp_path.iterdir())
    assert left == [40, 50, 60, 70, 80, 90]


def test_a_full_one_is_due_when_deltas_outgrow_it(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path))
    files.save(snapshot(10, 1, full=True), full=True)
    assert not files.full_due
    position = 10
    while not files.full_due:
        position += 1
        files.save(snapshot(position, position, full=False), full=False)
    assert position <= 70


def test_only_an_orderly_end_is_clean(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path))
    assert not files.claim("a", 0)
    files.release("a", 10)
    assert files.claim("b", 10)
    assert not files.claim("c", 10)  # b never released
    files.release("b", 10)  # and comes too late now
    assert not files.claim("d", 10)
    files.release("d", 12)
    assert not files.claim("e", 10)


_TWO_THREADS = """
import sys, threading, polars as pl
from penstock.windows.kernel import Delta
from spark_jobs.state import Snapshot, StateFiles

sys.setswitchinterval(0.0002)
frame = pl.DataFrame({"k": list(range(1000))})
files = StateFiles(sys.argv[1])
saver = threading.Thread(target=lambda: [files.save(Snapshot(n, deltas={7: [Delta({"x": frame}, True)]}), full=True) for n in range(15)])
saver.start()
while saver.is_alive():
    frame.lazy()
"""


def test_saving_does_not_block_a_kernel_that_holds_the_same_frames(tmp_path: Path) -> None:
    """polars locks a frame while it writes it to Python: both threads once waited for each other
    for ever, with the GIL.
    """
    subprocess.run([sys.executable, "-c", _TWO_THREADS, str(tmp_path)], check=True, timeout=50)


def test_a_file_that_finds_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    files = StateFiles(str(tmp_path))
    files.save(snapshot(10, 1, full=True), full=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            files.save(snapshot(20, 2, full=False), full=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [p.name for p in tmp_path.iterdir()] == [files.newest]

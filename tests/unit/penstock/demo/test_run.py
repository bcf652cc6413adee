"""What the demo counts, shows and concludes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from penstock.demo.run import (
    DemoFailed,
    Milestones,
    Outcome,
    Watch,
    _await_subscribers,
    _leave,
    _require_right,
    view,
)
from penstock.demo.streams import STREAMS
from penstock.sql import parse_one


class _Subscription:
    """Gives out messages, and then ends or fails."""

    def __init__(self, *messages: list[dict[str, Any]], error: Exception | None = None) -> None:
        self._messages = messages
        self._error = error

    def __iter__(self) -> Any:
        for items in self._messages:
            yield type("Update", (), {"items": items})
        if self._error is not None:
            raise self._error


def _listened(*messages: list[dict[str, Any]], error: Exception | None = None) -> Watch:
    watch = Watch()
    given: Any = _Subscription(*messages, error=error)
    watch.listen("hourly", given)
    return watch


def test_messages_and_their_rows_are_counted():
    watch = _listened([{"n": 1}, {"n": 2}], [], [{"n": 3}])
    assert watch.messages == {"hourly": 3}
    assert watch.rows == {"hourly": 3}
    assert watch.newest == {"hourly": {"n": 3}}
    assert watch.problem is None


def test_a_subscriber_that_is_cut_off_is_remembered():
    watch = _listened([{"n": 1}], error=OSError("cut"))
    assert str(watch.problem) == "cut"
    assert watch.messages == {"hourly": 1}


def test_waiting_ends_when_all_have_come_or_one_was_cut_off():
    watch = _listened([{"n": 1}])
    _await_subscribers(watch, {"hourly"}, patience=60)
    watch.problem = OSError("cut")
    _await_subscribers(watch, {"hourly", "late"}, patience=60)


def _shown(watch: Watch, width: int, *, wide: bool) -> str:
    console = Console(width=width)
    with console.capture() as shown:
        console.print(view(watch, wide=wide))
    return shown.get()


def test_the_view_shows_the_newest_row_of_each_stream():
    watch = _listened([{"n": 1.23456, "op": 0, "tbname": "x", "_wstart": 1_388_466_000_000}])
    text = _shown(watch, 200, wide=True)
    assert "n=1.23" in text and "tbname" not in text
    assert "2013-12-31 05:00" in text and "1388466000000" not in text
    assert all(stream.title in text for stream in STREAMS)


def test_the_view_fits_into_80_columns():
    row = {"_wstart": 1_388_466_000_000, "flights": 12, "delay": 3.25, "airport": "JFK"}
    lines = _shown(_listened([row]), 80, wide=False).splitlines()
    [line] = [line for line in lines if "hourly" in line]
    assert "2013-12-31 05:00" in line and "airport=JFK, flights=12, delay=3.25" in line
    assert max(map(len, lines)) <= 80


def test_a_pipe_says_how_far_it_is():
    console = Console(width=80, force_terminal=False)
    with console.capture() as shown:
        milestones = Milestones(console, _listened([{"n": 1}, {"n": 2}]), 1_000)
        for _ in range(4):
            milestones.advance(250)
    lines = shown.get().splitlines()
    assert [line.split(" rows")[0] for line in lines] == [
        "replayed 250 of 1,000",
        "replayed 500 of 1,000",
        "replayed 750 of 1,000",
        "replayed 1,000 of 1,000",
    ]
    assert lines[0].endswith("; 2 result rows so far")


def test_an_outcome_is_right_or_says_what_is_wrong():
    right = Outcome(rows=9, windows=3, notifications=2, mismatches=0, seconds=1.6)
    _require_right(right)
    assert right.line() == ("demo ok: rows=9 windows=3 notifications=2 mismatches=0 seconds=2")
    for wrong, words in (
        (Outcome(9, 3, 2, 1, 1.0), "1 result rows differ"),
        (Outcome(9, 0, 2, 0, 1.0), "nothing came out"),
        (Outcome(9, 3, 0, 0, 1.0), "nothing came out"),
    ):
        with pytest.raises(DemoFailed, match=words):
            _require_right(wrong)


def test_statements_and_rows_are_left_for_others(tmp_path: Path) -> None:
    frames = {s.name: pl.DataFrame({"n": [1]}) for s in STREAMS}
    _leave(tmp_path / "out", frames)
    lines = (tmp_path / "out" / "streams.sql").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(STREAMS)
    for line in lines:
        parse_one(line.removesuffix(";"))
    assert pl.read_parquet(tmp_path / "out" / "hourly.parquet").equals(frames["hourly"])

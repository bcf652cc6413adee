"""Ticks of the notifier, shown as times: which columns are times is asked once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.client.result import Result
from penstock.client.row_times import RowTimes, time_units
from penstock.errors import RemoteError

NAMES = ["tbname", "ts", "n"]
ROWS = [["a", 1_772_355_600_500, 1], ["b", None, 2]]


class Asked:
    """A connection that answers statements from a dictionary."""

    database = None

    def __init__(self, answers: dict[str, pa.Table]) -> None:
        self.answers = answers

    def query(self, sql: str, *, database: str | None = None) -> Result:
        return Result(self.answers[sql])


def test_ticks_are_times_and_the_question_is_asked_once() -> None:
    asked: list[str] = []

    def ask() -> dict[str, str]:
        asked.append("")
        return {"ts": "ms"}

    times = RowTimes(ask)
    assert times.shown(NAMES, []) == [] and not asked
    for _ in range(2):
        assert times.shown(NAMES, ROWS) == [["a", "2026-03-01 09:00:00.500", 1], ["b", None, 2]]
    assert len(asked) == 1


def test_all_digits_of_a_time_are_shown() -> None:
    times = RowTimes(lambda: {"t": "ns"})
    assert times.shown(["t"], [[1_772_355_600_000_000_001]]) == [["2026-03-01 09:00:00.000000001"]]
    # what cannot be a time is shown as it is
    assert RowTimes(lambda: {"t": "ms"}).shown(["t"], [[2**80], ["x"]]) == [[2**80], ["x"]]


def test_without_an_answer_ticks_are_shown() -> None:
    def fail() -> dict[str, str]:
        raise RemoteError("nobody there")

    times = RowTimes(fail)
    assert (
        times.shown(NAMES, ROWS)
        == ROWS
        == times.shown(NAMES, ROWS)
        == RowTimes().shown(NAMES, ROWS)
    )


SCHEMA = pa.schema([("_wstart", pa.timestamp("us", "UTC")), ("n", pa.int64())])


@pytest.mark.parametrize(
    ("request_", "units"),
    [
        ({"what": "rows", "table": "d.odd`name"}, {"_wstart": "us"}),
        ({"what": "rows", "stream": "d.S"}, {"_wstart": "us"}),
        ({"what": "rows", "stream": "d.told"}, {"_wstart": "us"}),
        ({"what": "events", "stream": "D.s"}, {"windowStart": "us", "windowEnd": "us"}),
        ({"what": "events", "stream": "gone.s"}, {"windowStart": "ms", "windowEnd": "ms"}),
    ],
)
def test_the_gateway_says_which_are_times(request_: dict[str, Any], units: dict[str, str]) -> None:
    connection: Any = Asked(
        {
            "SELECT * FROM d.`odd``name` LIMIT 0": SCHEMA.empty_table(),
            "SELECT * FROM far.by_minute LIMIT 0": SCHEMA.empty_table(),
            "SELECT * FROM d.told LIMIT 0": SCHEMA.empty_table(),
            "SHOW STREAMS": pa.table(
                {
                    "stream_name": ["r", "s", "told"],
                    "target_db": ["d", "far", None],
                    "target_table": ["x", "by_minute", None],
                }
            ),
            "SELECT name, `precision` FROM information_schema.ins_databases": pa.table(
                {"name": ["c", "d"], "precision": ["ns", "us"]}
            ),
        }
    )
    assert time_units(connection, request_) == units

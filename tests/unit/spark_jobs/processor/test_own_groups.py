"""A kernel behind the exchange reads again only rows of the groups that its partition finishes."""

from __future__ import annotations

from typing import Any

import polars as pl

from penstock.windows.kernel import LATEST
from spark_jobs.processor.group_places import PARTITIONS
from spark_jobs.processor.own_groups import OwnGroups
from spark_jobs.processor.route import Route
from spark_jobs.virtual_history import VirtualHistory
from tests.unit.windows.plans import BY_TAG, frame, window_plan

_ROWS = frame([[("d1", n, float(n)) for n in range(40)]]).with_columns(
    pl.Series("loc", [f"place{n % 10}" for n in range(40)])
)


class _Stored:
    """A history that remembers what it was asked."""

    since_begin = True

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def fetch(self, low: int, high: int, tables: Any = None) -> pl.DataFrame:
        self.asked.append(("fetch", low, high, tables))
        return _ROWS

    def fetch_versions(self, low: int, high: int, tables: Any = None) -> pl.DataFrame:
        self.asked.append(("versions", low, high, tables))
        return pl.concat([_ROWS, _ROWS])

    def mark(self) -> str:
        return "here"

    def at(self, mark: str) -> None:
        self.asked.append(("at", mark))

    def stretches(self, most: int) -> list[int]:
        return [most, LATEST]


def _own(number: int) -> tuple[OwnGroups, _Stored]:
    stored: Any = _Stored()
    return OwnGroups(stored, Route(window_plan(keys=BY_TAG)), number), stored


def test_partitions_share_all_groups_among_them():
    parts = [_own(n)[0].fetch(0, 100) for n in range(PARTITIONS)]
    assert sorted(t for p in parts for t in p.get_column("ts").to_list()) == list(range(40))
    groups = [set(p.get_column("loc")) for p in parts]
    assert sum(map(len, groups)) == 10  # no group is in two of them
    assert sum(1 for g in groups if g) > 1


def test_versions_are_chosen_like_rows():
    own, _ = _own(1)
    rows = own.fetch(0, 100)
    assert (
        own.fetch_versions(0, 100).get_column("loc").n_unique() == rows.get_column("loc").n_unique()
    )
    assert own.fetch_versions(0, 100).height == 2 * rows.height


def test_the_rest_is_the_stored_historys_matter():
    own, stored = _own(0)
    own.fetch(1, 2, ("d1",))
    own.at("there")
    assert stored.asked == [("fetch", 1, 2, ("d1",)), ("at", "there")]
    assert own.mark() == "here"
    assert own.since_begin
    assert own.stretches(7) == [7, LATEST]


def test_a_virtual_history_is_never_cut():
    virtual = VirtualHistory.__new__(VirtualHistory)
    own = OwnGroups(virtual, Route(window_plan(keys=BY_TAG)), 0)
    assert own.stretches(7) == [LATEST]

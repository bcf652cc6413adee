"""The newest few backups stay, and one for each hour and day, counted from the newest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.backup_list import Backup
from services.snode.retention import superfluous

HOUR = 3_600_000
DAY = 86_400_000


def backups(*times: int) -> list[Backup]:
    return [Backup("q", t, n, ()) for n, t in enumerate(times)]


def kept(*times: int, newest: int = 1, hours: int = 0, days: int = 0) -> list[int]:
    made = backups(*times)
    gone = superfluous(made, newest=newest, hours=hours, days=days)
    return sorted(b.time for b in made if b not in gone)


def test_newest_hours_and_days() -> None:
    assert kept(1, 2, 3, newest=2) == [2, 3]
    assert kept(0, 10, HOUR, HOUR + 5, 2 * HOUR, newest=1, hours=3) == [10, HOUR + 5, 2 * HOUR]
    assert kept(0, HOUR, DAY + 1, DAY + 2, newest=1, days=2) == [HOUR, DAY + 2]
    assert kept(0, 100 * DAY, newest=1, hours=24, days=7) == [100 * DAY], (
        "older than all that is kept"
    )
    assert kept() == []


@given(
    st.lists(st.integers(0, 30 * DAY), min_size=1, max_size=60, unique=True),
    st.integers(1, 5),
    st.integers(0, 30),
    st.integers(0, 9),
)
def test_what_stays_is_bounded_and_never_loses_the_newest(
    times: list[int], newest: int, hours: int, days: int
) -> None:
    stays = kept(*times, newest=newest, hours=hours, days=days)
    assert max(times) in stays
    assert len(stays) <= newest + hours + days
    # removing again removes nothing: a snode that is restarted changes nothing
    assert kept(*stays, newest=newest, hours=hours, days=days) == stays

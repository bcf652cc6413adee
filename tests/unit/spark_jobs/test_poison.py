"""Counting deaths per record."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.poison import LIMIT, WITH_DRIVER, Poison


def test_a_record_that_kills_is_given_up_at_its_third_death(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    Poison(path, "driver").begin(100, 163)  # first death: somewhere in the unit
    second = Poison(path, "driver")
    assert [second.suspects(o) for o in (99, 100, 163, 164)] == [False, True, True, False]
    assert second.alone(130, bound=False)
    assert not second.alone(164, bound=False)
    second.begin(100, 100)
    second.clear()
    second.begin(130, 130)  # second death
    third = Poison(path, "driver")
    assert not third.is_given_up(130)
    third.begin(130, 130)  # third death
    last = Poison(path, "driver")
    assert last.is_given_up(130)
    assert not last.is_given_up(131)


def test_a_unit_with_published_outputs_is_taken_apart_only_after_a_second_death(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mark"
    Poison(path, "driver").begin(5, 9)
    second = Poison(path, "driver")
    assert not second.alone(5, bound=True)
    second.begin(5, 9)
    assert Poison(path, "driver").alone(5, bound=True)


def test_deaths_between_units_count_for_nobody(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    for _ in range(5):
        mark = Poison(path, "driver")
        mark.begin(7, 7)
        mark.clear()
    assert not Poison(path, "driver").is_given_up(7)
    assert not Poison(path, "driver").alone(7, bound=False)


def test_a_torn_mark_is_no_mark(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    path.write_bytes(b"\1\2\3")
    assert not Poison(path, "driver").alone(0, bound=False)


def test_a_suspect_does_not_hide_in_the_unit_of_its_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    Poison(path, "driver").begin(41, 41)
    second = Poison(path, "driver")
    assert second.limit(40, 87, bound=False) == 40
    assert second.limit(41, 87, bound=False) == 87  # it begins the unit: `alone` decides
    assert second.limit(42, 87, bound=False) == 87
    assert second.limit(40, 87, bound=True) == 87
    second.begin(41, 41)
    assert Poison(path, "driver").limit(40, 87, bound=True) == 40


def test_deaths_of_the_driver_say_less_about_the_record_at_work(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    Poison(path, "run 0").begin(7, 7)
    for run in range(1, LIMIT // WITH_DRIVER):
        mark = Poison(path, f"run {run}")
        assert mark.alone(7, bound=False)
        assert not mark.is_given_up(7)
        mark.begin(7, 7)
    assert Poison(path, "the last").is_given_up(7)


def test_deaths_of_both_kinds_add_up(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    for run in ("first", "first", "second", "second"):
        mark = Poison(path, run)
        assert not mark.is_given_up(7)
        mark.begin(7, 7)
    # two workers died so far, and two drivers
    assert not (mark := Poison(path, "third")).is_given_up(7)
    mark.begin(7, 7)
    assert Poison(path, "third").is_given_up(7)

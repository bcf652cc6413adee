"""The nearest tests run, and the others are counted."""

from __future__ import annotations

from tests.affected.choice import Choice, choose


def test_all_when_they_fit_nearest_first() -> None:
    assert choose({"b": 2, "a": 3, "c": 1}, [], 3) == Choice(("c", "b", "a"), 0)


def test_the_furthest_are_left_out() -> None:
    assert choose({"b": 2, "a": 3, "c": 1}, [], 2) == Choice(("c", "b"), 1)


def test_of_equally_far_ones_an_even_part() -> None:
    steps = {f"t{n}": 1 for n in range(9)}
    assert choose(steps, [], 3) == Choice(("t0", "t3", "t6"), 6)


def test_tests_that_changed_themselves_always_run() -> None:
    steps = {"a": 0, "y": 0, "z": 0}
    assert choose(steps, ["penstock/x.py", "y", "z"], 1) == Choice(("y", "z"), 1)


def test_nothing_is_reached() -> None:
    assert choose({}, ["README.txt"], 5) == Choice((), 0)

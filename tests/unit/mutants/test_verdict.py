"""When a sample of mutants holds its floor."""

from __future__ import annotations

import random

from tests.mutants.verdict import Outcome, Tally


def tally(floor: int, mutants: int, killed: int, survived: int, timed_out: int = 0) -> Tally:
    made = Tally("t", floor, mutants)
    counts = {Outcome.KILLED: killed, Outcome.SURVIVED: survived, Outcome.TIMED_OUT: timed_out}
    for outcome, count in counts.items():
        for _ in range(count):
            made.add(outcome)
    return made


def test_a_mutant_that_makes_tests_hang_is_noticed() -> None:
    assert tally(50, 100, killed=5, survived=4, timed_out=1).rate == 60


def test_the_floor_itself_is_needed_when_all_mutants_were_tried() -> None:
    assert tally(60, 10, killed=6, survived=4).holds
    assert not tally(60, 10, killed=5, survived=5).holds


def test_a_sample_may_be_unlucky_but_not_far_off() -> None:
    assert tally(60, 1000, killed=11, survived=9).holds
    assert not tally(60, 1000, killed=8, survived=12).holds
    assert not tally(60, 10_000, killed=550, survived=450).holds


def test_tests_that_just_hold_the_floor_fail_one_run_of_twenty() -> None:
    chance = random.Random(1)
    mutants = [True] * 300 + [False] * 200
    passed = 0
    for _ in range(2000):
        killed = sum(chance.sample(mutants, 80))
        passed += tally(60, 500, killed, 80 - killed).holds
    assert 0.93 < passed / 2000 < 0.97


def test_nothing_tried_is_no_success() -> None:
    nothing = tally(0, 10, killed=0, survived=0)
    assert not nothing.holds
    assert str(nothing) == "t: no mutant was tried"


def test_the_summary_says_all_counts() -> None:
    assert str(tally(50, 10, killed=5, survived=4, timed_out=1)) == (
        "t: 10 of 10 mutants: 5 killed, 1 timed out, 4 survived: 60 %, "
        "holds its floor of 50 % (a sample of this size needs 50 %)"
    )
    assert "UNDER its floor of 70 %" in str(tally(70, 10, killed=6, survived=4))

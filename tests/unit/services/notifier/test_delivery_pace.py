from __future__ import annotations

from services.notifier.delivery_pace import DeliveryPace
from services.notifier.target_connection import TargetLimits


def pace() -> DeliveryPace:
    return DeliveryPace(TargetLimits(messages=32, size=1_000, wait=1.0), first_wait=0.1)


def test_waits_double_up_to_the_targets_limit_and_begin_anew():
    made = pace()
    waits = []
    for _ in range(6):
        made.note_failure()
        waits.append(made.delay)
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    made.note_success()
    assert made.delay == 0.0
    made.note_failure()
    assert made.delay == 0.1


def test_a_break_after_a_success_costs_the_first_wait():
    made = pace()
    made.note_break()
    assert made.delay == 0.1
    made.note_failure()
    made.note_break()
    assert made.delay == 0.2


def test_a_slow_target_gets_a_quarter_and_twice_as_much_after_each_success():
    made = pace()
    assert made.at_once == 32
    made.note_slowness(24)
    seen = [made.at_once]
    for _ in range(4):
        made.note_success()
        seen.append(made.at_once)
    assert seen == [6, 12, 24, 32, 32]
    made.note_slowness(1)
    assert made.at_once == 1

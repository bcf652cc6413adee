from __future__ import annotations

from concurrent.futures import Future

import pyarrow as pa
import pytest

from penstock.errors import RemoteError
from penstock.runtime.clock import ManualClock
from services.tables.leadership_term import LeadershipTerm
from services.tables.table_leadership import TableLeadership
from services.tables.writes import Offset, ProducerWrite

WRITE = ProducerWrite("p", 1, 1, pa.table({"v": [1]}), 8, Future())
OFFSET = Offset("o:s", 3, Future())


def refusal(leadership: TableLeadership) -> RemoteError:
    with pytest.raises(RemoteError) as wrong:
        leadership.require(WRITE)
    return wrong.value


def test_a_table_serves_once_all_of_its_group_have_begun():
    clock = ManualClock()
    term = LeadershipTerm(3, "N1.a")
    one, two = (TableLeadership(i, f"d.t{i}", term, clock) for i in (1, 2))
    term.expect(1)
    term.expect(2)
    one.begin()
    assert not one.serving
    assert (refusal(one).code, refusal(one).detail) == ("E_NOT_LEADER", "it is about to")
    two.begin()
    assert one.serving and two.serving
    one.require(WRITE)
    clock.advance(2)
    assert one.led_for == 2.0
    assert (one.epoch, one.leader) == (3, "N1.a")


def test_below_a_majority_offsets_are_taken_and_rows_are_not():
    leadership = TableLeadership(1, "d.t", LeadershipTerm(3, "N1.a"), ManualClock())
    leadership.begin()
    leadership.refuses = "no quorum"
    assert (refusal(leadership).code, refusal(leadership).detail) == ("E_NO_QUORUM", "no quorum")
    leadership.require(OFFSET)


def test_what_is_over_serves_nobody_and_says_why():
    leadership = TableLeadership(1, "d.t", LeadershipTerm(3, "N1.a"), ManualClock())
    leadership.begin()
    leadership.over = "N2 leads since epoch 4"
    assert not leadership.serving
    assert refusal(leadership).detail == leadership.error().detail == "N2 leads since epoch 4"

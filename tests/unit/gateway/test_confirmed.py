from __future__ import annotations

from gateway.confirmed import ConfirmedRows


def test_an_older_offset_does_not_replace_a_newer_one():
    confirmed = ConfirmedRows()
    confirmed.note_own({("t", 0): 7, ("t", 1): 3})
    confirmed.note_own({("t", 0): 5, ("t", 1): 4})
    assert confirmed.offsets == {("t", 0): 7, ("t", 1): 4}


def test_a_dropped_topic_is_forgotten_in_all_its_partitions():
    confirmed = ConfirmedRows()
    confirmed.note_own({("t", 0): 7, ("t", 1): 3, ("u", 0): 1})
    confirmed.forget({"t"})
    assert confirmed.offsets == {("u", 0): 1}

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.frame_answers import FrameAnswers
from penstock.errors import BusError, PenstockError, RemoteError


def refusal(number: int, message: str) -> dict[str, Any]:
    return {"nack": number, "error": {"code": "E_ROW", "message": message}}


def test_a_full_window_waits_no_longer_than_its_time():
    answers = FrameAnswers(window=1, timeout=0.01)
    assert answers.next_number() == 1
    with pytest.raises(BusError, match="answers no frame"):
        answers.next_number()
    answers.take({"ack": 1, "rows": 3})
    assert answers.next_number() == 2 and answers.acked == 3


def test_answers_that_do_not_come_are_counted():
    answers = FrameAnswers(window=8, timeout=0.01)
    answers.next_number()
    answers.next_number()
    answers.take({"ack": 1, "rows": 1})
    with pytest.raises(BusError, match="1 frames have no answer"):
        answers.wait_for_all()


def test_a_refusal_is_told_once_and_kept():
    answers = FrameAnswers(window=8, timeout=0.01)
    answers.next_number()
    answers.take(refusal(1, "no INT"))
    with pytest.raises(PenstockError, match="frame 1: no INT"):
        answers.require_good()
    answers.require_good()
    answers.wait_for_all()
    assert [number for number, _ in answers.refused] == [1]


def test_of_many_refusals_ten_are_named():
    answers = FrameAnswers(window=20, timeout=0.01)
    for number in range(1, 13):
        answers.next_number()
        answers.take(refusal(number, "no INT"))
    with pytest.raises(PenstockError) as told:
        answers.wait_for_all()
    words = told.value.message
    assert words.startswith("12 frames were refused: frame 1:") and words.endswith("; and 2 more")
    assert "frame 10:" in words and "frame 11:" not in words


def test_a_loss_with_all_answered_harms_only_the_next_frame():
    answers = FrameAnswers(window=8, timeout=0.01)
    answers.next_number()
    answers.take({"ack": 1, "rows": 1})
    answers.lose(ConnectionError("closed"))
    answers.wait_for_all()
    with pytest.raises(RemoteError, match="0 frames have no answer"):
        answers.next_number()

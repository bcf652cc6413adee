"""Answers reach who waits for them in the event loop, and only so much may wait."""

from __future__ import annotations

import asyncio

import pytest

from penstock.errors import OverloadError, SchemaError
from services.tables.answers import Answers
from services.tables.writes import Offset, ProducerWrite
from tests.unit.services.tables.kit import Outcome, rows


def write(size: int = 10, count: int = 1) -> ProducerWrite:
    return ProducerWrite("p", 1, 1, rows(*range(count)), size, Outcome())


def outcome(entry: ProducerWrite | Offset) -> Outcome:
    assert isinstance(entry.done, Outcome)
    return entry.done


async def test_a_write_is_told_its_rows_and_an_offset_its_row() -> None:
    answers = Answers(asyncio.get_running_loop(), 100)
    written = write(count=3)
    offset = Offset("o:act", 12, Outcome())
    answers.give([written, offset], None)
    assert outcome(written).result == 3
    assert outcome(offset).result == 12


async def test_an_error_goes_to_all_that_have_no_answer_yet() -> None:
    answers = Answers(asyncio.get_running_loop(), 100)
    told = write(count=2)
    answers.give([told], None)
    waits = write()
    error = SchemaError("a row does not fit", code="E_ROW")
    answers.give([told, waits], error)
    assert outcome(told).result == 2 and outcome(told).error is None
    assert outcome(waits).error is error


def test_what_waits_is_bounded_but_one_write_of_any_size_may() -> None:
    loop = asyncio.new_event_loop()
    answers = Answers(loop, 100)
    large = write(size=1_000)
    answers.expect(large)
    with pytest.raises(OverloadError) as full:
        answers.expect(write(size=1))
    assert full.value.code == "E_OVERLOAD"
    answers.give([large], None)
    answers.expect(write(size=60))
    answers.expect(write(size=40))
    with pytest.raises(OverloadError):
        answers.expect(write(size=1))
    loop.close()


async def test_another_thread_hands_answers_over_to_the_loop() -> None:
    answers = Answers(asyncio.get_running_loop(), 100)
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    entry = ProducerWrite("p", 1, 1, rows(1, 2), 10, done)
    await asyncio.to_thread(answers.give, [entry], None)
    assert await done == 2


def test_nobody_is_told_when_the_loop_is_closed() -> None:
    loop = asyncio.new_event_loop()
    answers = Answers(loop, 100)
    loop.close()
    entry = write()
    answers.give([entry], None)
    assert not outcome(entry).done()

"""A leader's records: what is numbered, cut, taken by key, and how repeats of it are told apart."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import PenstockError, SchemaError
from penstock.runtime.clock import ManualClock
from services.tables.leadership_term import LeadershipTerm
from services.tables.records import RecordBuilder, Sent
from services.tables.replica import Content
from services.tables.sent_records import SentRecords
from services.tables.stamp import ProducerPositions, WritePart, parse_trace, unpack
from services.tables.write_ledger import WriteLedger
from services.tables.writes import Offset, ProducerWrite
from tests.unit.services.tables.kit import (
    NOW,
    Log,
    Node,
    Outcome,
    rows,
    stream_table,
    whole_rows,
)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def write(
    producer: str,
    sequence: int,
    data: pa.Table,
    *,
    after: int | None = None,
    skip: int = 0,
) -> ProducerWrite:
    return ProducerWrite(producer, sequence, sequence, data, data.nbytes, Outcome(), after, skip)


class Builder:
    """A `RecordBuilder` in epoch 3, and the records that it has made."""

    def __init__(self, directory: Path, loop: asyncio.AbstractEventLoop, **table: object) -> None:
        made = stream_table(**table)  # type: ignore[arg-type]
        self.log = Log(made.topic)
        self.node = Node("N1", made, self.log, directory, loop)
        term = LeadershipTerm(3, "N1.abcd")
        self.records = RecordBuilder(self.node.replica, term, ManualClock(NOW))

    def make(self, *writes: ProducerWrite) -> list[Sent]:
        frame = self.records.to_frame(writes)
        accepted, cuts = self.records.cut(frame, writes)
        return [self.records.make(cut, accepted) for cut in cuts]

    def read(self, *sent: Sent) -> None:
        """The records are in the log, and the copy has them."""
        for record in sent:
            self.log.add(record.value)
        self.node.read()


def numbers(sent: Sent) -> list[int]:
    assert sent.content is not None and sent.content.rows is not None
    found: list[int] = sent.content.rows.column("n").to_pylist()
    return found


def test_the_opening_record_is_number_zero_of_its_epoch_and_has_no_rows(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    builder = Builder(tmp_path, loop)
    opening = builder.records.opening()
    assert (opening.number, opening.complete, opening.content) == (0, [], None)
    builder.read(opening)
    fence = builder.node.replica.copy.fence
    assert (fence.epoch, fence.number, fence.leader) == (3, 0, "N1.abcd")
    assert builder.node.replica.copy.next == 0


def test_rows_of_several_writes_share_a_record_that_says_whose_they_are(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    builder = Builder(tmp_path, loop)
    builder.records.begin(40)
    first = write("p", 1, rows(1, 2))
    second = write("q", 7, rows(3))
    (sent,) = builder.make(first, second)
    assert sent.complete == [first, second]
    assert sent.content is not None
    assert unpack(sent.content.stamp) == (3, 1)
    assert sent.content.first == 40
    assert sent.content.parts == (WritePart("p", 1, 2, 2), WritePart("q", 7, 1, 1))
    (third,) = builder.make(write("p", 2, rows(4)))
    assert third.content is not None
    assert (third.number, third.content.first) == (2, 43)
    decoded = builder.node.replica.rows.codec.decode([sent.value])
    assert decoded.rows["row_id"].to_list() == [40, 41, 42]
    assert parse_trace(decoded.records["trace"][0]).leader == "N1.abcd"


def test_rows_that_are_in_the_log_already_are_left_out(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    builder = Builder(tmp_path, loop)
    (sent,) = builder.make(write("p", 5, rows(1, 2, 3), skip=2))
    assert numbers(sent) == [3]
    assert sent.content is not None
    assert sent.content.parts == (WritePart("p", 5, 3, 3),)


def test_a_write_that_does_not_fit_is_refused(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    builder = Builder(tmp_path, loop)
    with pytest.raises(SchemaError) as wrong:
        builder.make(write("p", 1, pa.table({"ts": ["today"], "n": [1]})))
    assert wrong.value.code == "E_ROW"


def test_columns_of_producers_may_come_in_any_order(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    builder = Builder(tmp_path, loop)
    turned = rows(2).select(["n", "ts", "sym"])
    (sent,) = builder.make(write("p", 1, rows(1)), write("q", 1, turned))
    assert numbers(sent) == [1, 2]


def test_a_large_write_makes_several_records_and_is_complete_with_the_last(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    builder = Builder(tmp_path, loop)
    large = write("p", 1, rows(*range(60_000)))
    sent = builder.make(large)
    assert len(sent) > 1
    assert [s.number for s in sent] == list(range(1, len(sent) + 1))
    assert [s.complete for s in sent[:-1]] == [[]] * (len(sent) - 1)
    assert sent[-1].complete == [large]
    assert [n for s in sent for n in numbers(s)] == list(range(60_000))
    parts = [s.content.parts[0].done for s in sent if s.content is not None]
    assert parts == sorted(parts) and parts[-1] == 60_000


def test_only_rows_with_new_keys_are_taken_also_while_others_are_under_way(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    builder = Builder(tmp_path, loop, keys=("n",))
    builder.read(builder.records.opening())
    (first,) = builder.make(write("p", 1, rows(1, 1, 2)))
    assert numbers(first) == [1, 2]
    (second,) = builder.make(write("p", 2, rows(2, 3)))
    assert numbers(second) == [3], "the first record is not read back yet"
    builder.read(first, second)
    builder.records.settle(2)
    (third,) = builder.make(write("p", 3, rows(1, 4)))
    assert numbers(third) == [4]
    (nothing,) = builder.make(write("p", 4, rows(1, 2, 3, 4)))
    assert nothing.content is not None and nothing.content.rows is None
    assert nothing.content.parts == (WritePart("p", 4, 4, 4),), "the write counts all the same"


def test_a_changelog_says_which_rows_are_new_and_which_update(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    builder = Builder(tmp_path, loop, keys=("n",), key_rule="changelog", status_column="sym")
    without_status = rows(1, 2, 1).drop_columns(["sym"])
    (sent,) = builder.make(write("p", 1, without_status))
    assert sent.content is not None and sent.content.rows is not None
    assert sent.content.rows.column("sym").to_pylist() == ["N", "N", "U"]


def test_a_small_write_goes_the_short_way_and_counts_when_it_is_sent(
    tmp_path: Path, loop: asyncio.AbstractEventLoop
) -> None:
    builder = Builder(tmp_path, loop)
    builder.records.begin(10)
    builder.make(write("p", 1, whole_rows(1)))
    small = write("p", 2, whole_rows(5, 6))
    short = builder.records.short(small)
    assert short is not None and short.number == 2
    assert builder.records.short(small) is not None, "nothing has been counted yet"
    sent = builder.records.count(short)
    assert (sent.number, sent.complete, numbers(sent)) == (2, [small], [5, 6])
    (next_one,) = builder.make(write("p", 3, whole_rows(7)))
    assert next_one.content is not None
    assert (next_one.number, next_one.content.first) == (3, 13)


def test_what_cannot_go_the_short_way(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> None:
    keyed = Builder(tmp_path / "keyed", loop, keys=("n",))
    assert keyed.records.short(write("p", 1, whole_rows(1))) is None
    plain = Builder(tmp_path / "plain", loop)
    plain.make(write("p", 1, whole_rows(1)))
    assert plain.records.short(write("p", 2, whole_rows(1, 2), skip=1)) is None


def test_no_writes_make_no_records(tmp_path: Path, loop: asyncio.AbstractEventLoop) -> None:
    assert Builder(tmp_path, loop).make() == []


# -------------------------------------------------------------------- records under way


def content(first: int) -> Content:
    return Content(first, "N1", (), first, None)


def test_records_under_way_are_found_by_their_bytes_until_they_are_taken_off() -> None:
    under_way = SentRecords()
    assert not under_way
    one = write("p", 1, rows(1))
    two = write("p", 2, rows(2))
    under_way.add(Sent(1, b"a", [one], content(1)))
    under_way.add(Sent(2, b"b", [], content(2)))
    under_way.add(Sent(3, b"c", [two]))
    assert under_way
    assert under_way.content(b"b") == content(2)
    assert under_way.content(b"c") is None
    assert under_way.content(None) is None
    assert list(under_way.take_until(2)) == [one]
    assert under_way.content(b"b") is None
    assert under_way.clear() == [two]
    assert not under_way
    assert list(under_way.take_until(9)) == []


# -------------------------------------------------------------------- the ledger


def test_a_repeat_waits_for_its_first_copy() -> None:
    ledger = WriteLedger(10)
    first = write("p", 1, rows(1))
    again = write("p", 1, rows(1))
    assert ledger.judge(first) == "new"
    assert not ledger.hold_repeat(again), "nothing is under way"
    ledger.send(first)
    ledger.note(WritePart("p", 1, 1, 1))
    assert ledger.judge(again) == "repeat"
    assert ledger.hold_repeat(again)
    assert ledger.waiting() == [again]
    assert ledger.confirm(first) == [again]
    assert ledger.waiting() == []
    assert ledger.confirm(first) == []


def test_a_write_that_was_refused_gets_the_same_answer_again() -> None:
    ledger = WriteLedger(10)
    wrong = write("p", 1, rows(1))
    error = SchemaError("a row does not fit", code="E_ROW")
    ledger.send(wrong)
    assert ledger.refuse(wrong, error) == []
    assert ledger.refusal(write("p", 1, rows(1))) is error
    assert ledger.refusal(write("q", 1, rows(1))) is None
    data = rows(1)
    for sequence in range(2, 1_003):
        ledger.refuse(write("p", sequence, data), error)
    assert ledger.refusal(wrong) is None, "only so many are remembered"


def test_a_refused_write_of_a_producer_with_gaps_counts_as_never_sent() -> None:
    ledger = WriteLedger(10)
    ledger.note(WritePart("p", 4, 1, 1))
    wrong = write("p", 9, rows(1), after=4)
    ledger.note(WritePart("p", 9, 1, 1))
    ledger.refuse(wrong, SchemaError("no", code="E_ROW"))
    last = ledger.last("p")
    assert last is not None and last.sequence == 4
    assert ledger.refusal(wrong) is None
    first = write("q", 3, rows(1), after=0)
    ledger.note(WritePart("q", 3, 1, 1))
    ledger.refuse(first, SchemaError("no", code="E_ROW"))
    assert ledger.last("q") is None


def test_an_epoch_begins_with_what_is_known_of_producers() -> None:
    ledger = WriteLedger(10)
    ledger.begin(ProducerPositions(10, [WritePart("p", 5, 2, 2)]))
    assert ledger.judge(write("p", 6, rows(1))) == "new"
    assert ledger.judge(write("p", 5, rows(1))) == "repeat"
    with pytest.raises(PenstockError) as wrong:
        ledger.judge(write("p", 8, rows(1), after=7))
    assert wrong.value.code == "E_SEQUENCE"


def test_an_offset_is_a_part_of_a_record_like_a_write() -> None:
    assert Offset("o:act", 12, Outcome()).part == WritePart("o:act", 12, 0, 0)
    assert Offset("o:act", -1, Outcome()).part.total == -1, "it is forgotten"

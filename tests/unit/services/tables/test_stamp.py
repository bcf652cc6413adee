from __future__ import annotations

import pytest

from services.tables.stamp import (
    Fence,
    ProducerPositions,
    Trace,
    WritePart,
    pack,
    parse_trace,
    unpack,
)


def test_epochs_outweigh_numbers() -> None:
    assert unpack(pack(7, 12)) == (7, 12)
    assert pack(1, 2**40 - 1) < pack(2, 0)


def test_a_trace_is_read_as_it_was_written() -> None:
    trace = Trace("N1.ab", (WritePart("a:b,c|d", 3, 10, 20), WritePart("o:übung", 7, 0, 0)))
    assert parse_trace(str(trace)) == trace
    assert parse_trace(str(Trace("N1.ab"))) == Trace("N1.ab")
    for text in (None, "", "no bar", "N1|a:b"):
        with pytest.raises(ValueError, match=".*"):
            parse_trace(text)


def test_only_the_newest_epochs_leader_counts() -> None:
    fence = Fence()
    told = [
        (pack(1, 0), "A", True),
        (pack(1, 1), "A", True),
        (pack(1, 1), "A", False),
        (pack(1, 3), "A", False),
        (pack(1, 2), "B", False),
        (pack(2, 1), "B", False),
        (pack(2, 0), "B", True),
        (pack(1, 2), "A", False),
        (pack(2, 0), "C", False),
        (pack(2, 1), "C", False),
        (pack(2, 1), "B", True),
    ]
    assert [fence.admits(offset, leader) for offset, leader, _ in told] == [
        good for *_, good in told
    ]


def test_a_log_without_its_beginning_is_taken_up_where_it_is() -> None:
    fence = Fence()
    assert (
        fence.admits(pack(5, 17), "A")
        and fence.admits(pack(5, 18), "A")
        and not fence.admits(pack(4, 0), "B")
    )


def test_the_oldest_producers_are_forgotten() -> None:
    producers = ProducerPositions(2)
    for name in ("a", "b", "a", "c"):
        producers.note(WritePart(name, 1, 1, 1))
    assert producers.get("b") is None and producers.get("a") is not None
    producers.note(WritePart("a", 0, 0, -1))
    assert producers.get("a") is None and [p.producer for p in producers.all()] == ["c"]

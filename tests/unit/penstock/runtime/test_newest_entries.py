"""What is kept of a process's log for others: how much, how long, and that it is what the log has."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from penstock.runtime import log
from penstock.runtime.newest_entries import LONGEST, NewestEntries, TakenEntries, shorten
from penstock.sql.secret import hide
from tests.unit.logs import configure, logging_as_before


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    with logging_as_before():
        yield


def configured(most: int = 100, level: str = "INFO") -> NewestEntries:
    kept = NewestEntries(most)
    configure("attic", level, kept.keep)
    return kept


def events(taken: TakenEntries) -> list[str]:
    return [json.loads(entry)["event"] for entry in taken.entries]


def test_they_are_the_lines_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    kept = configured()
    text = "CREATE USER ann PASS 'hunter2hunter2'"
    log.get("penstock.a").info("ddl", sql=hide(text))
    logging.getLogger("lib").warning("std %s", 1)
    try:
        raise KeyError("x")
    except KeyError:
        log.get("penstock.a").exception("bad")
    taken = kept.take()
    assert list(taken.entries) == capsys.readouterr().err.splitlines()
    assert "hunter2" not in "".join(taken.entries)
    assert events(taken) == ["ddl", "std 1", "bad"]


def test_each_is_taken_once_and_debug_not_at_all() -> None:
    kept = configured(level="DEBUG")
    log.get("penstock.a").debug("no")
    log.get("penstock.a").info("yes")
    assert events(kept.take()) == ["yes"]
    assert kept.take() == TakenEntries()


def test_of_a_flood_the_newest_stay_and_the_others_are_counted() -> None:
    kept = configured(most=3)
    for number in range(10):
        log.get("penstock.a").info(str(number))
    taken = kept.take()
    assert (events(taken), taken.left_out) == (["7", "8", "9"], 7)
    log.get("penstock.a").info("after")
    taken = kept.take()
    assert (events(taken), taken.left_out) == (["after"], 0)


def test_long_values_are_cut_and_of_a_traceback_the_end_stays() -> None:
    line = {
        "event": "e" * 10_000,
        "sql": "ä" * 10_000,
        "exception": "begin" + "x" * 10_000 + "end",
        "many": ["y"] * 10_000,
        "trace": "order-17",
    }
    found = json.loads(shorten(json.dumps(line, ensure_ascii=False)))
    assert found["event"].endswith("e…") and found["sql"].endswith("ä…")
    assert found["exception"].startswith("…") and found["exception"].endswith("end")
    assert found["many"].startswith('["y"') and found["many"].endswith("…")
    assert found["trace"] == "order-17"
    assert len(shorten(json.dumps(line, ensure_ascii=False))) <= LONGEST


def test_of_too_many_fields_the_last_go() -> None:
    line = {"event": "many", **{f"f{n}": "x" * 50 for n in range(1_000)}, "trace": "order-17"}
    text = shorten(json.dumps(line))
    found = json.loads(text)
    assert len(text) <= LONGEST
    assert (found["event"], found["f0"], found["trace"], found["…"]) == (
        "many",
        "x" * 50,
        "order-17",
        "…",
    )
    assert "f999" not in found


def test_half_a_character_can_be_sent() -> None:
    kept = configured()
    log.get("penstock.a").info("half", name="\ud83d")
    (entry,) = kept.take().entries
    assert json.loads(entry.encode())["name"] == "?"

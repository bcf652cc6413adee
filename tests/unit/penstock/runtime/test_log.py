from __future__ import annotations

import json
import logging
import threading

import pytest

from penstock.runtime import log
from tests.unit.logs import configure, logging_as_before


@pytest.fixture(autouse=True)
def _as_before():
    with logging_as_before():
        yield


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_both_ways_of_logging_give_the_same_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure("attic")
    log.get("penstock.a", stream=7).warning("late", rows=3)
    logging.getLogger("lib").warning("std %s", 1)
    first, second = lines(capsys)
    assert (first["event"], first["service"], first["stream"], first["rows"], first["level"]) == (
        "late",
        "attic",
        7,
        3,
        "warning",
    )
    assert (second["event"], second["service"], second["logger"]) == ("std 1", "attic", "lib")


def test_threads_carry_the_service_and_tracebacks_stay_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure("attic")

    def fail() -> None:
        try:
            raise KeyError("x")
        except KeyError:
            log.get("penstock.a").exception("bad")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    (line,) = lines(capsys)
    assert line["service"] == "attic" and "KeyError" in str(line["exception"])


def test_level_and_talkative_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    configure("attic", "INFO")
    log.get("penstock.a").debug("no")
    logging.getLogger("aiokafka.x").info("no")
    log.get("penstock.a").info("yes")
    assert [line["event"] for line in lines(capsys)] == ["yes"]

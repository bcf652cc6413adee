"""EXPLAIN CREATE OR REPLACE STREAM decides what the statement decides, says it, and does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.errors import PenstockError
from penstock.sql import parse_one
from penstock.sql import statements as st
from tests.unit.gateway.kit import ROOT, MemoryGateway

STREAM = (
    "CREATE STREAM s INTO r AS SELECT _wstart, sum(a) AS total FROM met PARTITION BY tbname"
    " INTERVAL(10s)"
)
REPLACE = STREAM.replace("CREATE STREAM s", "CREATE OR REPLACE STREAM s {}")
TOLD = "CREATE OR REPLACE STREAM s FILL_HISTORY 1 AS SELECT sum(a) AS total FROM met INTERVAL(10s)"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[MemoryGateway]:
    made = MemoryGateway(tmp_path)
    made.define("CREATE DATABASE d; CREATE STABLE met (ts TIMESTAMP, a INT) TAGS (ta INT)")
    made.define(STREAM)
    yield made
    made.close()


def stream_of(gateway: MemoryGateway) -> StreamEntry:
    found = gateway.catalog.stream("d", "s")
    assert found is not None
    return found


def explain(gateway: MemoryGateway, text: str, user: str = ROOT) -> dict[str, str]:
    statement = parse_one(text)
    assert isinstance(statement, st.CreateStream)
    before = len(gateway.writer.changes)
    shown = gateway.parts.streams.explain(statement, "d", "UTC", user).to_pydict()
    assert len(gateway.writer.changes) == before, "nothing is made"
    return dict(zip(shown["item"], shown["value"], strict=True))


def test_other_options_leave_windows_and_results(gateway: MemoryGateway) -> None:
    text = REPLACE.format("IDLE_TIMEOUT 1h ON_ERROR STOP MAX_STATE 256 FILL_HISTORY 1")
    told = explain(gateway, text)
    assert told["replaces"] == "d.s" and told["state"] == "kept: it goes on with its open windows"
    assert (
        told["options"]
        == "IDLE_TIMEOUT 1h (was none), ON_ERROR STOP (was DROP), MAX_STATE 256 (was 0)"
    )
    assert (told["history"], told["results"]) == ("not computed again", "go on in d.r")
    assert told["target"] == "d.r"
    before = stream_of(gateway).id
    gateway.define(text)
    assert stream_of(gateway).id == before and stream_of(gateway).plan.max_state == 256
    assert explain(gateway, text)["options"] == "as they are"


def test_other_windows_begin_anew_into_the_same_table(gateway: MemoryGateway) -> None:
    text = REPLACE.format("FILL_HISTORY 1").replace("10s", "20s")
    told = explain(gateway, text)
    assert told["state"] == "open windows are lost" and "options" not in told
    assert told["history"] == "computed anew from the rows that d.met holds"
    assert told["results"].startswith("d.r is kept with its rows") and told["target"] == "d.r"
    old = stream_of(gateway)
    gateway.define(text)
    new = stream_of(gateway)
    assert new.id != old.id and new.plan.target.table_id == old.plan.target.table_id


@pytest.mark.parametrize(
    ("text", "results", "target"),
    [
        (
            REPLACE.format("FILL_HISTORY 1").replace("INTO r", "INTO r2"),
            "go to d.r2; d.r and its rows stay",
            "d.r2 (new)",
        ),
        (
            f"{TOLD} NOTIFY ON ('WINDOW_CLOSE')",
            "go to the events of NOTIFY; d.r and its rows stay",
            "none: results are in the events of NOTIFY only",
        ),
    ],
)
def test_results_that_go_elsewhere_leave_the_table_of_before(
    gateway: MemoryGateway, text: str, results: str, target: str
) -> None:
    told = explain(gateway, text)
    assert (told["results"], told["target"]) == (results, target)


def test_a_table_that_was_there_before_the_stream_is_kept_too(gateway: MemoryGateway) -> None:
    gateway.define("CREATE STABLE mine (t TIMESTAMP, total BIGINT) TAGS (name VARCHAR(192))")
    text = (
        "CREATE STREAM other INTO mine (t, total) TAGS (name) AS SELECT _wstart, sum(a) FROM met"
        " PARTITION BY tbname AS name INTERVAL(10s)"
    )
    gateway.define(text)
    anew = text.replace("CREATE STREAM other", "CREATE OR REPLACE STREAM other FILL_HISTORY 1")
    told = explain(gateway, anew.replace("10s", "20s"))
    assert told["results"].startswith("d.mine is kept with its rows") and told["target"] == "d.mine"


def test_a_stream_that_failed_has_no_windows_to_keep(gateway: MemoryGateway) -> None:
    field = f"{names.FAILED}in.d:0"
    gateway.redis.hset(names.stream_status(stream_of(gateway).id), field, "too much")
    told = explain(gateway, REPLACE.format("FILL_HISTORY 1"))
    assert told["state"] == "none is left: the stream has failed"


def test_without_a_stream_of_that_name_nothing_is_replaced(gateway: MemoryGateway) -> None:
    text = REPLACE.format("").replace("STREAM s", "STREAM t").replace("INTO r", "INTO r2")
    assert explain(gateway, text)["replaces"] == "nothing: there is no stream d.t"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (REPLACE.format("WATERMARK 5s"), "E_STREAM_STATE"),
        (
            REPLACE.format("FILL_HISTORY 1").replace("sum(a)", "max(a) AS top, sum(a)"),
            "E_STREAM_STATE",
        ),
        (REPLACE.format("FILL_HISTORY 1").replace("sum(a)", "sum(b)"), "E_UNKNOWN_COLUMN"),
    ],
)
def test_explain_refuses_what_the_statement_refuses(
    gateway: MemoryGateway, text: str, code: str
) -> None:
    for refused in (lambda: explain(gateway, text), lambda: gateway.define(text)):
        with pytest.raises(PenstockError) as wrong:
            refused()
        assert wrong.value.code == code


def test_explain_refuses_targets_that_the_user_may_not_name(gateway: MemoryGateway) -> None:
    gateway.define("CREATE USER ann PASS 'a long password'")
    text = f"{TOLD} NOTIFY ('ws://elsewhere.example:1/a') ON ('WINDOW_CLOSE')"
    with pytest.raises(PenstockError) as wrong:
        explain(gateway, text, "ann")
    assert wrong.value.code == "E_NOTIFY_TARGET"
    assert explain(gateway, text)["state"] == "open windows are lost"


def test_explain_refuses_a_stream_that_would_read_its_own_results(gateway: MemoryGateway) -> None:
    gateway.define(
        "CREATE STREAM next INTO r2 AS SELECT _wstart, sum(total) AS total FROM r INTERVAL(1m)"
    )
    circle = REPLACE.format("FILL_HISTORY 1").replace("sum(a)", "sum(total)").replace("met", "r2")
    for refused in (lambda: explain(gateway, circle), lambda: gateway.define(circle)):
        with pytest.raises(PenstockError) as wrong:
            refused()
        assert wrong.value.code == "E_STREAM_CYCLE"

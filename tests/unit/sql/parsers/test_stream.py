"""CREATE STREAM: options, target, NOTIFY; and what manages streams."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.names import EVENT_NUMBER, EVENT_TIME
from penstock.sql.compile import parse_expression
from penstock.sql.dialect import to_sql
from penstock.sql.parsers.stream import StreamParser
from penstock.sql.plan import Duration, Trigger
from penstock.sql.statements import (
    AlterStream,
    CreateStream,
    CreateTable,
    FlushStream,
    Name,
    NotifyClause,
    PauseStream,
    RecalculateStream,
    RelativeTime,
    ResumeStream,
    StreamOptions,
    TargetColumn,
    TargetTag,
)
from penstock.types import ColumnType
from tests.unit.sql.reading import read, refusal, refused

TAIL = "INTO o AS SELECT a FROM t"


def created(text: str, or_replace: bool = False) -> Any:
    return read(StreamParser, text, lambda p: p.create_stream(or_replace))


def options(text: str) -> StreamOptions:
    found = created(f"s {text} {TAIL}").options
    assert isinstance(found, StreamOptions)
    return found


def seconds(value: int) -> Duration:
    return Duration(value, "s")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", StreamOptions()),
        ("TRIGGER AT_ONCE", StreamOptions(trigger=Trigger("at_once"))),
        ("TRIGGER WINDOW_CLOSE", StreamOptions(trigger=Trigger("window_close"))),
        ("TRIGGER MAX_DELAY 5s", StreamOptions(trigger=Trigger("max_delay", seconds(5)))),
        ("TRIGGER FORCE_WINDOW_CLOSE", StreamOptions(trigger=Trigger("force_window_close"))),
        (
            "TRIGGER CONTINUOUS_WINDOW_CLOSE",
            StreamOptions(trigger=Trigger("continuous_window_close")),
        ),
        (
            "TRIGGER CONTINUOUS_WINDOW_CLOSE RECALCULATE 20m",
            StreamOptions(trigger=Trigger("continuous_window_close", Duration(20, "m"))),
        ),
        ("WATERMARK 0", StreamOptions(watermark=Duration(0, "a"))),
        (
            "WATERMARK 3s DELETE_MARK 4s",
            StreamOptions(watermark=seconds(3), delete_mark=seconds(4)),
        ),
        (
            "IGNORE UPDATE 0 IGNORE EXPIRED 1",
            StreamOptions(ignore_update=False, ignore_expired=True),
        ),
        ("FILL_HISTORY 1", StreamOptions(fill_history=True)),
        ("FILL_HISTORY 1 ASYNC", StreamOptions(fill_history=True, fill_history_async=True)),
        ("IDLE_TIMEOUT 9s", StreamOptions(idle_timeout=seconds(9))),
        ("ON_ERROR STOP", StreamOptions(on_error="stop")),
        ("MAX_RESULTS 10 MAX_STATE 0", StreamOptions(max_results=10, max_state=0)),
        ("MAX_STATE 1000000000", StreamOptions(max_state=10**9)),
    ],
)
def test_options_of_a_stream(text: str, wanted: StreamOptions) -> None:
    assert options(text) == wanted


def test_a_stream_writes_into_its_target() -> None:
    found = created(
        "IF NOT EXISTS db.s INTO x.o (a, b COMPOSITE KEY) TAGS (t INT COMMENT 'c', u)"
        " SUBTABLE(concat('x', t)) AS SELECT a FROM t PARTITION BY t"
    )
    assert isinstance(found, CreateStream)
    assert (found.stream, found.target) == (Name("s", "db"), Name("o", "x"))
    assert found.if_not_exists and not found.or_replace
    assert found.target_columns == (TargetColumn("a"), TargetColumn("b", True))
    assert found.tags == (TargetTag("t", ColumnType("INT"), "c"), TargetTag("u"))
    assert found.subtable is not None and to_sql(found.subtable) == "concat('x', t)"
    assert to_sql(found.query) == "SELECT a FROM t PARTITION BY t"


def test_clauses_know_where_they_stand() -> None:
    text = f"s WATERMARK 1s IGNORE UPDATE 0 {TAIL} NOTIFY ON ('WINDOW_OPEN')"
    places = created(text).positions
    assert {k: text[v:].split()[0] for k, v in places.items()} == {
        "watermark": "WATERMARK",
        "ignore_update": "IGNORE",
        "into": "INTO",
        "as": "AS",
        "notify": "NOTIFY",
    }


def test_subtable_may_stand_before_tags() -> None:
    found = created("s INTO o SUBTABLE(a) TAGS (t) AS SELECT a FROM t")
    assert found.tags == (TargetTag("t"),) and found.subtable is not None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("NOTIFY ON ('window_close')", NotifyClause((), ("WINDOW_CLOSE",))),
        (
            "NOTIFY ('http://a', 'http://b') ON ('window_open', 'window_close')"
            " NOTIFY_HISTORY 1 ON_FAILURE PAUSE",
            NotifyClause(("http://a", "http://b"), ("WINDOW_OPEN", "WINDOW_CLOSE"), True, "pause"),
        ),
        (
            "NOTIFY ON ('x') ON_FAILURE drop NOTIFY_HISTORY 0",
            NotifyClause((), ("X",), False, "drop"),
        ),
        ("NOTIFY ON ('x') SIGNED_BY 'k'", NotifyClause((), ("X",), signed_by="k")),
        (
            "NOTIFY ON ('x') WHERE c > 5 AND s LIKE 'a%' NOTIFY_HISTORY 1",
            NotifyClause((), ("X",), True, where=parse_expression("c > 5 AND s LIKE 'a%'")),
        ),
    ],
)
def test_notify(text: str, wanted: NotifyClause) -> None:
    whole = f"s {TAIL} {text}"
    found = created(whole).notify
    assert found == wanted
    assert [whole[o] for o in (*found.url_offsets, *found.on_offsets)] == ["'"] * (
        len(wanted.urls) + len(wanted.on)
    )


@pytest.mark.parametrize(
    "query", ["AS SELECT _wstart, count(*) FROM t INTERVAL(1s)", "FROM t INTERVAL(1s)"]
)
def test_without_into_the_windows_are_only_told_of(query: str) -> None:
    found = created(f"s WATERMARK 1s {query} NOTIFY ON ('WINDOW_CLOSE')")
    assert found.target is None and found.notify is not None
    assert (found.target_columns, found.tags, found.subtable) == (None, None, None)
    assert to_sql(found.query) == "SELECT _wstart, count(*) FROM t INTERVAL(1s)"


@pytest.mark.parametrize("query", ["AS SELECT a FROM t", "FROM t INTERVAL(1s)"])
def test_a_stream_that_goes_nowhere_is_refused_where_into_would_stand(query: str) -> None:
    found = refused(lambda: created(f"s WATERMARK 1s {query}"))
    assert found == ("E_SYNTAX", 1, 16, "this stream has neither INTO nor NOTIFY")


def test_columns_in_place_of_a_query_make_a_table_of_events() -> None:
    found = created("db.s (a INT) KEEP 3")
    assert isinstance(found, CreateTable) and found.stream
    assert [c.name for c in found.columns] == [EVENT_TIME, EVENT_NUMBER, "a"]
    assert found.options.keep == Duration(3, "d")
    assert "INTO" in refusal(lambda: created("s (a INT)", or_replace=True)).message


@pytest.mark.parametrize(
    ("text", "code", "column", "message"),
    [
        (
            f"s WATERMARK 1s WATERMARK 2s {TAIL}",
            "E_OPTION_TWICE",
            16,
            "WATERMARK is given twice (first found in line 1)",
        ),
        (
            f"s IGNORE UPDATE 0 IGNORE UPDATE 1 {TAIL}",
            "E_OPTION_TWICE",
            19,
            "IGNORE UPDATE is given twice (first found in line 1)",
        ),
        (
            "s INTO o TAGS (a) TAGS (b) AS SELECT a FROM t",
            "E_OPTION_TWICE",
            19,
            "TAGS is given twice (first found in line 1)",
        ),
        (f"s IGNORE ALL 0 {TAIL}", "E_SYNTAX", 10, "expected IGNORE EXPIRED or IGNORE UPDATE"),
        (f"s IGNORE UPDATE 2 {TAIL}", "E_SYNTAX", 17, "expected 0 or 1"),
        (f"s TRIGGER NEVER {TAIL}", "E_SYNTAX", 11, "expected a trigger, found NEVER"),
        (f"s TRIGGER MAX_DELAY {TAIL}", "E_SYNTAX", 21, "expected a length of time"),
        (f"s ON_ERROR SKIP {TAIL}", "E_SYNTAX", 12, "expected DROP or STOP, found SKIP"),
        (f"s MAX_STATE 1000000001 {TAIL}", "E_SYNTAX", 13, "expected a number up to 1000000000"),
        (f"s WATRMARK 1s {TAIL}", "E_SYNTAX", 3, "expected a stream option or INTO"),
        ("s SUBTABLE('a') AS SELECT a", "E_SYNTAX", 3, "expected a stream option or INTO"),
        ("s INTO o SELECT a", "E_SYNTAX", 10, "expected AS, found SELECT"),
        (f"s {TAIL} NOTIFY ('x')", "E_SYNTAX", 41, "expected ON, but the statement ends"),
        (f"s {TAIL} NOTIFY ON (x)", "E_SYNTAX", 40, "expected a string, found x"),
    ],
)
def test_a_fault_is_refused_at_its_place(text: str, code: str, column: int, message: str) -> None:
    found = refused(lambda: created(text))
    assert found[:3] == (code, 1, column)
    assert found[3].startswith(message)


def test_a_misspelt_option_gets_a_hint() -> None:
    error = refusal(lambda: created(f"s WATRMARK 1s {TAIL}"))
    assert error.hint.startswith("did you mean WATERMARK?")


S = Name("s", "db")
MANAGED: list[tuple[str, str, Any]] = [
    ("pause", "STREAM db.s", PauseStream(stream=S)),
    ("pause", "STREAM IF EXISTS db.s", PauseStream(stream=S, if_exists=True)),
    ("flush", "STREAM IF EXISTS db.s", FlushStream(stream=S, if_exists=True)),
    ("resume", "STREAM db.s", ResumeStream(stream=S)),
    (
        "resume",
        "STREAM IF EXISTS IGNORE UNTREATED db.s",
        ResumeStream(stream=S, if_exists=True, ignore_untreated=True),
    ),
    ("resume", "STREAM db.s IGNORE UNTREATED", ResumeStream(stream=S, ignore_untreated=True)),
    ("recalculate", "STREAM db.s FROM 5", RecalculateStream(stream=S, begin=5)),
    (
        "recalculate",
        "STREAM db.s FROM '2024-01-01' TO now - 1s",
        RecalculateStream(
            stream=S, begin="2024-01-01", until=RelativeTime("now", ((-1, seconds(1)),))
        ),
    ),
    (
        "alter_stream",
        "db.s MAX_STATE 5 WATERMARK 1s",
        AlterStream(stream=S, options=StreamOptions(watermark=seconds(1), max_state=5)),
    ),
]


@pytest.mark.parametrize(("rule", "text", "wanted"), MANAGED, ids=[m[1] for m in MANAGED])
def test_managing_a_stream(rule: str, text: str, wanted: Any) -> None:
    assert read(StreamParser, text, lambda p: getattr(p, rule)()) == wanted


@pytest.mark.parametrize(
    ("rule", "text", "column", "message"),
    [
        ("pause", "db.s", 1, "expected STREAM, found db"),
        ("recalculate", "STREAM s TO 1", 10, "expected FROM, found TO"),
        ("alter_stream", "s", 2, "expected a stream option, but the statement ends"),
        ("alter_stream", "s SIZE 1", 3, "expected a stream option, found SIZE"),
    ],
)
def test_managing_is_refused_at_its_fault(rule: str, text: str, column: int, message: str) -> None:
    call = lambda: read(StreamParser, text, lambda p: getattr(p, rule)())  # noqa: E731
    assert refused(call) == ("E_SYNTAX", 1, column, message)

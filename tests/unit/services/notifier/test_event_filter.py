"""WHERE of NOTIFY over events as they come out of the log."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from penstock.feeds.cursor import Cursor
from penstock.records import encode
from penstock.sql.plan import Column, StreamPlan
from penstock.types import ColumnType
from services.notifier.event_filter import passing
from services.notifier.message import pack
from services.notifier.subscription import EventSubscription
from tests.unit.services.notifier.kit import entry, event, piece, record


def plan(where: str, *columns: tuple[str, ColumnType]) -> StreamPlan:
    """The plan of a stream that counts in `c`, with more result columns."""
    made = entry("NOTIFY ('ws://h:1/a') ON ('WINDOW_CLOSE')").plan
    assert made.notify is not None
    names = [name for name, _ in columns]
    target = replace(
        made.target,
        columns=(*made.target.columns, *(Column(n, kind) for n, kind in columns)),
        column_of=(*made.target.column_of, *names),
    )
    return replace(made, target=target, notify=replace(made.notify, where=where))


def closed(table: str = "d1", **result: Any) -> dict[str, Any]:
    return event(table=table, tags={"tbname": table}, result={"_wstart": 1, **result})


def numbers(
    where: str, events: list[dict[str, Any]], *columns: tuple[str, ColumnType]
) -> list[int]:
    """Places of the events that pass."""
    told = passing(plan(where, *columns), events)
    return [at for at, one in enumerate(events) if any(one is t for t in told)]


def test_results_and_keys_decide() -> None:
    events = [closed("d1", c=1), closed("d2", c=7), closed("d1", c=9), closed("d1", c=None)]
    assert numbers("c > 5", events) == [1, 2]
    assert numbers("c > 5 AND tbname = 'd1'", events) == [2]
    assert numbers("c IS NULL OR c = 1", events) == [0, 3]
    assert numbers("tbname LIKE 'd%'", events) == [0, 1, 2, 3]
    assert numbers("", events) == [0, 1, 2, 3]
    assert numbers("FALSE", events) == []


@pytest.mark.parametrize(
    ("kind", "values", "where", "passed"),
    [
        (ColumnType("BOOL"), [True, False, None], "x", [0]),
        (ColumnType("DOUBLE"), [0.5, 1, None], "x >= 0.75", [1]),
        (ColumnType("BIGINT UNSIGNED"), [2**64 - 1, 2**63, 1], "x > 9223372036854775808", [0]),
        (ColumnType("DECIMAL", precision=20, scale=2), ["10.10", "9.99", None], "x > 9.995", [0]),
        (ColumnType("TIMESTAMP"), [0, 86_400_000, None], "x > '1970-01-01 12:00:00'", [1]),
        (ColumnType("VARCHAR", length=9), ["ab", "Ä'b", None], "x = 'Ä\\'b'", [1]),
        # what the log cannot have had: a text where the type is a number
        (ColumnType("INT"), ["7", {"a": 1}, 7], "x = 7", [0, 2]),
    ],
)
def test_values_have_the_types_of_their_columns(
    kind: ColumnType, values: list[Any], where: str, passed: list[int]
) -> None:
    events = json.loads(json.dumps([closed(c=1, x=value) for value in values]))
    assert numbers(where, events, ("x", kind)) == passed


def test_what_was_taken_back_is_always_told() -> None:
    gone = event("WINDOW_INVALIDATION", tags={"tbname": "d1"})
    assert numbers("c > 5", [closed(c=1), gone, closed(c=6)]) == [1, 2]


def test_events_without_result_or_tags_do_not_pass() -> None:
    assert numbers("c > 5", [event(), event(result=None, tags=None), closed(c=6)]) == [2]


def test_targets_and_subscribers_get_the_same() -> None:
    stream = entry("NOTIFY ('ws://h:1/a') ON ('WINDOW_CLOSE') WHERE c > 5")
    some = record([closed(c=1), closed(c=6)])
    made = pack(stream, some, 0, 9, now=1)
    assert made is not None and made.events == 1
    assert json.loads(made.text)["streams"][0]["events"] == [closed(c=6)]
    assert pack(stream, record([closed(c=1)]), 0, 9, now=1) is None
    heard = EventSubscription(Cursor({0: 0}), stream).take(piece([encode(some)]))
    assert heard is not None and json.loads(heard.payload) == [closed(c=6)]
    none = piece([encode(record([closed(c=1)]))])
    assert EventSubscription(Cursor({0: 0}), stream).take(none) is None


def test_one_event_that_fails_does_not_hide_others() -> None:
    """polars gives up a column in which one time is beyond its calendar."""
    events = [closed(x=10), closed(x=2**63 - 1), closed(x=20)]
    assert numbers("date(x) IS NOT NULL", events, ("x", ColumnType("TIMESTAMP"))) == [0, 2]

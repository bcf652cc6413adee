"""A record of events becomes the message of the reference, or nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from services.notifier.message import NotifyTarget, message_id, pack, targets_of

from .kit import entry, event, record


def test_message_has_the_form_of_the_reference() -> None:
    made = pack(
        entry(), record([event("WINDOW_OPEN"), event(result={"c": 1})]), 0, 9, now=1733284887203
    )
    assert made is not None
    message = json.loads(made.text)
    assert list(message) == ["messageId", "timestamp", "streams"]
    assert isinstance(message["messageId"], str) and message["timestamp"] == 1733284887203
    assert message["streams"] == [
        {"streamName": "s", "events": [event("WINDOW_OPEN"), event(result={"c": 1})]}
    ]
    assert (made.partition, made.offset, made.position, made.events, made.name) == (
        0,
        9,
        (4, 0),
        2,
        "db.s",
    )


def test_only_the_types_asked_for_and_invalidations() -> None:
    only_open = entry("NOTIFY ('ws://h:1/a') ON ('WINDOW_OPEN')")
    made = pack(
        only_open,
        record([event("WINDOW_OPEN"), event("WINDOW_CLOSE"), event("WINDOW_INVALIDATION")]),
        0,
        9,
        now=1,
    )
    assert made is not None
    assert [e["eventType"] for e in json.loads(made.text)["streams"][0]["events"]] == [
        "WINDOW_OPEN",
        "WINDOW_INVALIDATION",
    ]
    assert pack(only_open, record([event("WINDOW_CLOSE")]), 0, 9, now=1) is None


@pytest.mark.parametrize(("flag", "told"), [("0", False), ("1", True)])
def test_events_of_history_only_when_asked_for(flag: str, told: bool) -> None:
    stream = entry(f"NOTIFY ('ws://h:1/a') ON ('WINDOW_CLOSE') NOTIFY_HISTORY {flag}")
    assert (pack(stream, record([event()], history=True), 0, 9, now=1) is not None) is told


def test_nobody_to_tell() -> None:
    assert pack(entry("NOTIFY ON ('WINDOW_CLOSE')"), record([event()]), 0, 9, now=1) is None
    assert pack(entry(""), record([event()]), 0, 9, now=1) is None


def test_not_a_number_becomes_null() -> None:
    made = pack(
        entry(),
        replace(
            record([]), events='[{"eventType":"WINDOW_CLOSE","result":{"a":NaN,"b":Infinity}}]'
        ),
        0,
        9,
        now=1,
    )
    assert made is not None
    assert json.loads(made.text)["streams"][0]["events"][0]["result"] == {"a": None, "b": None}


def test_message_id_belongs_to_the_record() -> None:
    stream = entry()
    one = record([event()])
    first = pack(stream, one, 0, 9, now=1)
    again = pack(stream, one, 0, 44, now=2)
    assert first is not None and again is not None
    assert json.loads(first.text)["messageId"] == json.loads(again.text)["messageId"]
    others = [
        message_id(stream, record([], offset=5)),
        message_id(stream, record([], ordinal=1)),
        message_id(replace(stream, created=6), record([])),
        message_id(stream, replace(record([]), producer="s:13:in.db:0")),
    ]
    assert len({message_id(stream, one), *others}) == 5


def test_targets_and_their_keys() -> None:
    drop = entry("NOTIFY ('ws://h:1/a|b', 'wss://g:2') ON ('WINDOW_OPEN') ON_FAILURE DROP")
    assert targets_of(drop) == (
        NotifyTarget("ws://h:1/a|b", "drop"),
        NotifyTarget("wss://g:2", "drop"),
    )
    assert targets_of(entry()) == (NotifyTarget("ws://h:1/a", "pause"),)
    signed = entry("NOTIFY ('https://h/a', 'ws://h:1') ON ('WINDOW_OPEN') SIGNED_BY 'orders'")
    assert targets_of(signed) == (
        NotifyTarget("https://h/a", "pause", "db/orders"),
        NotifyTarget("ws://h:1", "pause"),
    )
    elsewhere = replace(signed, plan=replace(signed.plan, database="../a|b:c"))
    assert targets_of(elsewhere)[0].signed_by == "..%2Fa%7Cb%3Ac/orders"
    for target in (*targets_of(drop), *targets_of(entry()), *targets_of(signed)):
        assert NotifyTarget.of_key(target.key(3)) == (3, target)


def test_events_say_what_they_were_traced_by() -> None:
    made = pack(entry(), replace(record([event(), event()]), trace="abc"), 0, 9, now=1)
    assert made is not None and made.trace == "abc"
    assert [e["traceId"] for e in json.loads(made.text)["streams"][0]["events"]] == ["abc", "abc"]

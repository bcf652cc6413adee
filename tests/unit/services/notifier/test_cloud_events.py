"""Window events as CloudEvents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.notifier.cloud_events import body_of, cloud_events, request_id
from services.notifier.message import NotifyMessage, pack

from .kit import entry, event, record


def message(*events: dict[str, Any], now: int = 1) -> NotifyMessage:
    made = pack(entry(), record(list(events)), 0, 9, now=now)
    assert made is not None
    return made


def test_ids_stay_and_are_all_different() -> None:
    ids = [e.id for e in cloud_events(message(event(), event(), event()))]
    assert len(set(ids)) == 3
    assert ids == [e.id for e in cloud_events(message(event(), event(), event(), now=77))]


def test_an_event_of_no_table_has_no_subject() -> None:
    told = {k: v for k, v in event().items() if k != "tableName"}
    (of_table,), (of_none,) = cloud_events(message(event())), cloud_events(message(told))
    assert of_table.attributes["subject"] == "d1" and json.loads(of_none.text)["data"] == told
    assert of_none.attributes.keys() == of_table.attributes.keys() - {"subject"}


def test_ids_of_requests_follow_from_those_of_events() -> None:
    events = cloud_events(message(event(), event(), event()))
    assert request_id(events[:1]) == events[0].id
    found = [request_id(events), request_id(events[:2]), request_id(events[1:])]
    assert len(set(found)) == 3 and found[0] == request_id(list(events))


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("WINDOW_OPEN", "penstock.window.open"),
        ("WINDOW_CLOSE", "penstock.window.close"),
        ("WINDOW_INVALIDATION", "penstock.window.invalidation"),
    ],
)
def test_the_type_says_what_happened(kind: str, wanted: str) -> None:
    (made,) = cloud_events(message(event(kind)))
    assert json.loads(made.text)["type"] == wanted


@pytest.mark.parametrize(
    ("ticks", "wanted"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1733284887197, "2024-12-04T04:01:27.197Z"),
        (10**17, None),
        (-(10**17), None),
        (None, None),
        ("soon", None),
    ],
)
def test_the_time_is_left_out_where_no_text_can_say_it(ticks: Any, wanted: str | None) -> None:
    (made,) = cloud_events(message(event(eventTime=ticks)))
    assert json.loads(made.text).get("time") == wanted


def test_attributes_are_not_empty_and_text_is_utf8() -> None:
    (made,) = cloud_events(message(event(table="", groupId="", result={"text": "grün"})))
    found = json.loads(made.text)
    assert not {"subject", "partitionkey"} & found.keys() and "grün" in made.text
    body, kind = body_of([made])
    assert body.decode() == made.text and kind.startswith("application/cloudevents+json")
    both, kind = body_of([made, made])
    assert json.loads(both) == [found, found]
    assert kind.startswith("application/cloudevents-batch+json")


def test_a_source_is_a_reference_whatever_the_names() -> None:
    made = message(event())
    odd = NotifyMessage(**{**vars(made), "name": "shop.über/x y?#"})
    source = json.loads(cloud_events(odd)[0].text)["source"]
    assert source == "/streams/shop.%C3%BCber%2Fx%20y%3F%23"

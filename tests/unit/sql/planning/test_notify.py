"""NOTIFY: addresses that can be reached, events that exist."""

from __future__ import annotations

import pytest

from penstock.sql.plan import Notify
from penstock.sql.planning.notify import MAX_URL_BYTES, plan_notify
from penstock.sql.statements import CreateStream
from tests.unit.sql.planning.binding import refused_at, statement
from tests.unit.sql.reading import refusal


def made(clause: str) -> CreateStream:
    return statement(f"1 FROM t {clause}")


def test_without_a_clause_there_is_nothing_to_plan() -> None:
    assert plan_notify(made(""), windowed=False) is None


@pytest.mark.parametrize(
    ("clause", "wanted"),
    [
        ("NOTIFY ON ('window_open')", Notify((), ("WINDOW_OPEN",))),
        (
            "NOTIFY ('ws://a:1/x', 'WSS://b:2', 'ws://a:1/x') ON ('WINDOW_OPEN', 'WINDOW_CLOSE',"
            " 'WINDOW_OPEN') NOTIFY_HISTORY 1 ON_FAILURE DROP",
            Notify(("ws://a:1/x", "WSS://b:2"), ("WINDOW_OPEN", "WINDOW_CLOSE"), True, "drop"),
        ),
        (
            "NOTIFY ('ws://[::1]:80') ON ('WINDOW_OPEN')",
            Notify(("ws://[::1]:80",), ("WINDOW_OPEN",)),
        ),
    ],
)
def test_urls_and_events_are_taken_once(clause: str, wanted: Notify) -> None:
    assert plan_notify(made(clause), windowed=True) == wanted


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://a:1", "'http' is no WebSocket scheme"),
        ("a:1", "'a' is no WebSocket scheme"),
        ("//a:1", "the address has no scheme"),
        ("ws://:1", "the address has no host"),
        ("ws://a", "the address has no port"),
        ("ws://a:0", "the address has no port"),
        ("ws://a:x", "the address cannot be read"),
        ("ws://a:99999", "the address cannot be read"),
        ("ws://[a:1", "the address cannot be read"),
        ("ws://a:1/#x", "the address has a fragment"),
        ("ws://a:1/ x", "the address has blanks or control characters"),
        ("ws://a:1/" + "x" * MAX_URL_BYTES, f"the address has {MAX_URL_BYTES + 9} bytes"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str, problem: str) -> None:
    statement = made(f"NOTIFY ('ws://a:1', '{url}') ON ('WINDOW_OPEN')")
    error = refusal(lambda: plan_notify(statement, windowed=True))
    assert error.code == "E_NOTIFY_URL"
    assert error.message.startswith(f"NOTIFY: {problem}")
    assert statement.source.text[error.column - 1 :].startswith(f"'{url[:5]}")


def test_an_unreadable_address_is_not_quoted() -> None:
    """It may hold a password."""
    statement = made("NOTIFY ('ws://u:secret@[a:1') ON ('WINDOW_OPEN')")
    assert "secret" not in refusal(lambda: plan_notify(statement, windowed=True)).message


def test_events_are_those_of_windows() -> None:
    unknown = made("NOTIFY ON ('WINDOW_OPEN', 'WINDOW_GONE')")
    call = lambda: plan_notify(unknown, windowed=True)  # noqa: E731
    assert refused_at(unknown, call) == ("E_NOTIFY_EVENT", "'WINDOW_GONE")
    bare = made("NOTIFY ON ('WINDOW_OPEN')")
    assert refused_at(bare, lambda: plan_notify(bare, windowed=False)) == (
        "E_NOTIFY_WINDOW",
        "NOTIFY ON ('",
    )

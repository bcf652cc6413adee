"""NOTIFY: addresses that can be reached, events that exist."""

from __future__ import annotations

import pytest

from penstock.sql.plan import Notify
from penstock.sql.planning.notify import MAX_URL_BYTES, MAX_WEB_BYTES, plan_notify
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
            "NOTIFY ('kafka://Alerts', 'kafka://a.b_c-1') ON ('WINDOW_OPEN')",
            Notify(("kafka://Alerts", "kafka://a.b_c-1"), ("WINDOW_OPEN",)),
        ),
        (
            "NOTIFY ('ws://[::1]:80') ON ('WINDOW_OPEN')",
            Notify(("ws://[::1]:80",), ("WINDOW_OPEN",)),
        ),
        (
            "NOTIFY ('https://a/x', 'HTTP://b:8080', 'ws://c:1') ON ('WINDOW_OPEN')"
            " ON_FAILURE DROP SIGNED_BY 'orders'",
            Notify(
                ("https://a/x", "HTTP://b:8080", "ws://c:1"),
                ("WINDOW_OPEN",),
                False,
                "drop",
                "orders",
            ),
        ),
    ],
)
def test_urls_and_events_are_taken_once(clause: str, wanted: Notify) -> None:
    assert plan_notify(made(clause), windowed=True) == wanted


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://a:1", "'ftp' is no scheme of a target"),
        ("a:1", "'a' is no scheme of a target"),
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
        ("http://", "the address has no host"),
        ("http:///x", "the address has no host"),
        ("https://a:0", "the address has no port"),
        ("https://a:99999", "the address cannot be read"),
        ("https://a/#x", "the address has a fragment"),
        ("https://a/ä", "the address has characters that need to be written as %XX"),
        (r"https://a/x\\\\@b", "the address has characters that need to be written as %XX"),
        (r"https://a/x\r\nX: y", "the address has blanks or control characters"),
        ("kafka:", "the address has no topic"),
        ("kafka:a", "the address has no topic"),
        ("kafka://", "the address has no topic"),
        ("kafka://broker:9092", "kafka:// and the name of a topic is all"),
        ("kafka://u:p@t", "kafka:// and the name of a topic is all"),
        ("kafka://a/b", "kafka:// and the name of a topic is all"),
        ("kafka://..", "kafka:// and the name of a topic is all"),
        ("kafka://" + "x" * 250, "kafka:// and the name of a topic is all"),
        ("kafka://penstock.events", "the topic is, or could be, one of Penstock's"),
        ("KAFKA://In.power", "the topic is, or could be, one of Penstock's"),
        ("kafka://in_power", "the topic is, or could be, one of Penstock's"),
        ("kafka://__consumer_offsets", "the topic is, or could be, one of Penstock's"),
        ("https://a/" + "x" * MAX_WEB_BYTES, f"the address has {MAX_WEB_BYTES + 10} bytes"),
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


@pytest.mark.parametrize(
    ("address", "key", "problem"),
    [
        ("https://a", "../root", "this is no name of a key"),
        ("https://a", "a/b", "this is no name of a key"),
        ("https://a", ".hidden", "this is no name of a key"),
        ("https://a", "", "this is no name of a key"),
        ("https://a", "k" * 65, "this is no name of a key"),
        ("ws://a:1", "orders", "only requests to http:// and https:// are signed"),
    ],
)
def test_a_key_has_a_name_and_something_to_sign(address: str, key: str, problem: str) -> None:
    statement = made(f"NOTIFY ('{address}') ON ('WINDOW_OPEN') SIGNED_BY '{key}'")
    error = refusal(lambda: plan_notify(statement, windowed=True))
    assert (error.code, error.message) == ("E_NOTIFY_KEY", f"SIGNED_BY: {problem}")
    assert statement.source.text[error.column - 1 :].startswith("SIGNED_BY")


def test_events_are_those_of_windows() -> None:
    unknown = made("NOTIFY ON ('WINDOW_OPEN', 'WINDOW_GONE')")
    call = lambda: plan_notify(unknown, windowed=True)  # noqa: E731
    assert refused_at(unknown, call) == ("E_NOTIFY_EVENT", "'WINDOW_GONE")
    bare = made("NOTIFY ON ('WINDOW_OPEN')")
    assert refused_at(bare, lambda: plan_notify(bare, windowed=False)) == (
        "E_NOTIFY_WINDOW",
        "NOTIFY ON ('",
    )

"""Clauses of CREATE STREAM that are missing, or written as other systems have them."""

from __future__ import annotations

from penstock.errors import SqlSyntaxError
from penstock.sql.mistakes.place import Place


def _without_target(place: Place) -> SqlSyntaxError | None:
    """`CREATE STREAM s AS SELECT …`, and options in WITH."""
    if place.says("this stream has neither"):
        return place.hinted(
            "a stream writes into a table, which it makes: CREATE STREAM name INTO result AS …; or"
            " its windows are only told of: NOTIFY ('https://…') ON ('WINDOW_CLOSE') at the end"
        )
    if place.says("expected a stream option or INTO") and place.word() == "WITH":
        return place.hinted(
            "options stand without WITH: CREATE STREAM name TRIGGER WINDOW_CLOSE INTO result AS …"
        )
    return None


def _notify(place: Place) -> SqlSyntaxError | None:
    """NOTIFY in front of the query, without its events, or without their parentheses."""
    if place.word() == "NOTIFY" and place.says("expected AS"):
        return place.hinted("NOTIFY stands at the end: INTO result AS SELECT … window NOTIFY (…)")
    words = [token.text.upper() for token in place.tokens[: place.index]]
    if "NOTIFY" not in words:
        return None
    if place.says("expected ON"):
        return place.hinted(
            "write NOTIFY ('ws://host:port/path') ON ('WINDOW_OPEN', 'WINDOW_CLOSE')"
        )
    if place.word(-1) == "ON" and place.says('expected "("'):
        return place.hinted("write ON ('WINDOW_OPEN', 'WINDOW_CLOSE')")
    return None


def _emit(place: Place) -> SqlSyntaxError | None:
    """`EMIT CHANGES`"""
    # behind a table it was taken for the table's other name
    at = -1 if place.word(-1) == "EMIT" else 0
    if place.word(at) != "EMIT" or not place.says("the statement should end"):
        return None
    return place.mistake(
        "there is no EMIT",
        "a stream says before INTO when it publishes: TRIGGER AT_ONCE at each change, TRIGGER"
        " WINDOW_CLOSE when a window is over",
        at,
    )


STREAM_CLAUSES = (_without_target, _notify, _emit)

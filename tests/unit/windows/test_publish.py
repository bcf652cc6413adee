"""When a window is put, dropped or left waiting, by trigger."""

from __future__ import annotations

import polars as pl
import pytest

from penstock.sql.plan import Trigger
from penstock.windows.emit.publish import CLOSED, OPEN, PublishPolicy

_NO = 0


def window(**about):
    """A finished window, open and touched, and not published yet, but for what *about* says."""
    usual = {
        "_done": True,
        "_closed": False,
        "_touched": True,
        "_loud": True,
        "_was_open": True,
        "_pub": _NO,
        "_dirty": False,
    }
    return pl.DataFrame([usual | about]).with_columns(pl.col("_pub").cast(pl.Int8))


def decide(trigger, at_once=False, **about):
    """(put, drop, dirty), and what is published afterwards."""
    policy = PublishPolicy(Trigger(trigger))
    decided = policy.decide(window(**about), at_once)
    after = policy.settled(decided, at_once)
    assert not {"_put", "_drop", "_closed", "_was_open"} & set(after.columns)
    assert after.select("_touched", "_loud").row(0) == (False, False)
    assert after.schema["_pub"] == pl.Int8
    marks = decided.select("_put", "_drop", "_dirty").row(0)
    return "".join(m for m, is_set in zip("PDW", marks, strict=True) if is_set), after["_pub"][0]


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, ("P", OPEN)),
        ({"_closed": True}, ("P", CLOSED)),
        ({"_touched": False}, ("", _NO)),
        ({"_touched": False, "_pub": OPEN}, ("", OPEN)),
        ({"_done": False, "_pub": OPEN}, ("D", _NO)),
        ({"_done": False}, ("", _NO)),
    ],
)
def test_at_once_puts_what_is_touched(about, expected):
    assert decide("at_once", **about) == expected


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, ("", _NO)),
        ({"_closed": True}, ("P", CLOSED)),
        ({"_closed": True, "_touched": False}, ("P", CLOSED)),
        ({"_closed": True, "_touched": False, "_pub": CLOSED}, ("", CLOSED)),
        ({"_closed": True, "_pub": CLOSED}, ("P", CLOSED)),
        ({"_pub": CLOSED}, ("D", _NO)),
        ({"_pub": OPEN}, ("", OPEN)),
        ({"_done": False, "_pub": OPEN}, ("D", _NO)),
        ({"_closed": True, "_done": False}, ("", _NO)),
    ],
)
def test_window_close_puts_what_is_over_and_takes_back_what_opens_again(about, expected):
    assert decide("window_close", **about) == expected


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({}, ("W", _NO)),
        ({"_touched": False}, ("", _NO)),
        ({"_touched": False, "_dirty": True}, ("W", _NO)),
        ({"_closed": True, "_dirty": True}, ("P", CLOSED)),
    ],
)
def test_max_delay_has_open_windows_wait_for_the_clock(about, expected):
    assert decide("max_delay", **about) == expected


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        ({"_closed": True}, ("P", CLOSED)),
        ({"_closed": True, "_was_open": False, "_pub": CLOSED}, ("P", CLOSED)),
        ({"_closed": True, "_was_open": False, "_loud": False, "_pub": CLOSED}, ("W", CLOSED)),
        ({"_closed": True, "_was_open": False, "_loud": False}, ("W", _NO)),
        ({"_pub": CLOSED, "_done": False}, ("", CLOSED)),
    ],
)
def test_continuous_close_has_late_changes_wait_and_drops_nothing(about, expected):
    assert decide("continuous_window_close", **about) == expected


def test_history_is_put_at_once_whatever_the_trigger():
    assert decide("window_close", at_once=True) == ("P", OPEN)
    # what an earlier stretch showed has closed since
    over = {"_closed": True, "_touched": False, "_pub": OPEN}
    assert decide("window_close", at_once=True, **over) == ("", CLOSED)


def test_only_continuous_close_keeps_rows_of_windows_that_vanished():
    kinds = ("at_once", "window_close", "max_delay", "continuous_window_close")
    kept = [PublishPolicy(Trigger(kind)).keeps_vanished for kind in kinds]
    assert kept == [False, False, False, True]

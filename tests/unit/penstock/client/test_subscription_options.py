"""Filters of subscriptions, in any of the forms that a program may give."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.client.subscription_options import SubscriptionOptions, filter_of


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, None),
        ("qty > 10", {"sql": "qty > 10"}),
        (["A", "B"], {"values": ["A", "B"]}),
        ([], {"values": []}),
        (range(3, 9), {"range": [3, 9]}),
        (("A", "M"), {"range": ["A", "M"]}),
        (("A", "B", "C"), {"values": ["A", "B", "C"]}),
        (("A",), {"values": ["A"]}),
        ((), {"values": []}),
        (("hash", 4, 0), {"hash": [4, 0]}),
        (("hash", 4, 0, 2), {"hash": [4, 0, 2]}),
        ({"sql": "x = 1"}, {"sql": "x = 1"}),
    ],
)
def test_every_form_is_one_for_the_node(given, wanted):
    assert filter_of(given) == wanted


@pytest.mark.parametrize("given", [7, 1.5, {"A", "B"}, object()])
def test_anything_else_is_no_filter(given: Any) -> None:
    with pytest.raises(TypeError, match="a filter is"):
        filter_of(given)


def test_by_default_every_block_is_handed_over_as_it_comes():
    options = SubscriptionOptions()
    assert (options.batch_size, options.throttle, options.hash) == (0, 1.0, -1)
    assert not (options.reconnect or options.persist_offset or options.time_trigger)
    assert options.raft_group is None and options.filter is None

"""Whose streams have their targets notified: several makers may name one target, and share the
connection to it.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.catalog.model import Grant, User
from penstock.catalog.view import Catalog
from penstock.clock import ManualClock
from penstock.health import Health
from penstock.records import encode
from services.notifier.metrics import PushMetrics
from services.notifier.push import Push
from services.notifier.settings import NotifierSettings
from tests.unit.services.notifier.kit import entry, event, record

BOSS = User(5, "boss", "h", grants=(Grant("ADMIN", 0),))
ANN = User(6, "ann", "h", grants=(Grant("CREATE", 1),))


def told(push: Push, maker: str) -> bool:
    """Tell whether an event of a stream of *maker* becomes a message."""
    return (
        push._message(0, 4, encode(record([event()])), dataclasses.replace(entry(), maker=maker))
        is not None
    )


@pytest.mark.parametrize(
    ("allow", "maker", "expected"),
    [
        ((), "root", True),
        ((), "boss", True),
        ((), "", True),
        ((), "ann", False),
        ((), "dropped", False),
        (("h",), "ann", True),
        (("10.0.0.0/8",), "ann", True),
    ],
)
def test_a_stream_notifies_with_its_makers_rights(
    allow: tuple[str, ...], maker: str, expected: bool
) -> None:
    catalog = Catalog([BOSS, ANN])
    health = Health("notifier", 0)
    reader = cast(Any, SimpleNamespace(catalog=catalog))
    push = Push(
        NotifierSettings(notify_allow=allow),
        reader,
        health,
        PushMetrics(health.registry),
        ManualClock(0),
        cast(Any, None),
        cast(Any, None),
    )
    assert told(push, maker) is expected
    if maker == "boss":
        catalog.put(dataclasses.replace(BOSS, grants=()))
        assert not told(push, maker), "the right was revoked"
    health.close()

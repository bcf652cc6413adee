"""Whose streams have their targets notified: several makers may name one target, and share the
connection to it.
"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.auth.access import Access
from penstock.catalog.model import Grant, User
from penstock.catalog.view import Catalog
from penstock.outbound.reach import Outbound
from penstock.records import encode
from penstock.runtime.clock import ManualClock
from services.notifier.packing import Packer
from services.notifier.settings import NotifierSettings
from tests.unit.services.notifier.kit import entry, event, record

BOSS = User(5, "boss", "h", grants=(Grant("ADMIN", 0),))
ANN = User(6, "ann", "h", grants=(Grant("CREATE", 1),))


def told(packer: Packer, maker: str) -> bool:
    """Tell whether an event of a stream of *maker* becomes a message."""
    stream = dataclasses.replace(entry(), maker=maker)
    return packer.pack(0, 4, encode(record([event()])), stream) is not None


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
    reader = cast(Any, SimpleNamespace(catalog=catalog))
    settings = NotifierSettings(notify_allow=allow)
    access = Access(lambda: catalog, settings.user)
    packer = Packer(reader, Outbound(settings, access, allow), ManualClock(0))
    assert told(packer, maker) is expected
    if maker == "boss":
        catalog.put(dataclasses.replace(BOSS, grants=()))
        assert not told(packer, maker), "the right was revoked"

"""Whose rights say whom a stream may notify, after somebody else has altered it."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.ddl.stream_replies import StreamReplies
from gateway.ddl.streams import StreamDefinitions
from penstock.auth.access import Access
from penstock.catalog.changes import Change
from penstock.catalog.model import Grant, StreamEntry, User
from penstock.catalog.view import Catalog
from penstock.config.settings import Settings
from penstock.outbound.reach import Outbound
from penstock.outbound.targets import TargetRefused
from penstock.runtime.clock import ManualClock
from tests.unit.services.notifier.kit import entry

BOSS = User(5, "boss", "h", grants=(Grant("ADMIN", 0),))
ANN = User(6, "ann", "h", grants=(Grant("ALTER", 1),))


def streams(user: str, committed: list[Change]) -> StreamDefinitions:
    """As *user* meets them, with a list of hosts that names another one than that of the stream."""
    catalog = Catalog([BOSS, ANN])
    definer = SimpleNamespace(
        user=user, catalog=SimpleNamespace(source_topics=lambda _: {}), commit=committed.append
    )
    notified = Outbound(Settings(), Access(lambda: catalog, "root"), ("*.example.com",))
    replies = StreamReplies(cast(Any, definer), cast(Any, None))
    return StreamDefinitions(cast(Any, definer), cast(Any, None), replies, ManualClock(0), notified)


@pytest.mark.parametrize(
    "clause",
    [
        None,
        "NOTIFY ('ws://other:1/a') ON ('WINDOW_CLOSE')",
        "NOTIFY ('ws://h:1/a') ON ('WINDOW_CLOSE')",
    ],
)
def test_who_alters_notify_answers_for_it(clause: str | None) -> None:
    """Else somebody without ADMIN would send messages wherever they like with the rights of who
    made the stream.
    """
    committed: list[Change] = []
    known = dataclasses.replace(entry(), maker="boss")
    altered = (
        known.plan
        if clause is None
        else dataclasses.replace(known.plan, notify=entry(clause).plan.notify)
    )
    streams("ann", committed)._alter(known, altered)
    ((put,),) = (change.puts for change in committed)
    assert isinstance(put, StreamEntry) and put.maker == ("boss" if clause is None else "ann")


def test_who_writes_a_stream_anew_is_asked_for_its_targets() -> None:
    plan = entry().plan
    streams("boss", [])._check_notify(plan, "boss")
    with pytest.raises(TargetRefused, match="may not be notified"):
        streams("ann", [])._check_notify(plan, "ann")

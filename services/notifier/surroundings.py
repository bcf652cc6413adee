"""What a delivery and its connection ask of the process they run in."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from penstock.feeds.feed import FeedHistory
from penstock.feeds.slices import Slice
from penstock.outbound.targets import AllowList, Resolved, endpoint, resolve
from penstock.runtime import tls
from penstock.runtime.clock import Clock, SystemClock
from services.notifier.cursor import Mark
from services.notifier.message import NotifyMessage, NotifyTarget
from services.notifier.metrics import PushMetrics
from services.notifier.settings import NotifierSettings


@dataclass(frozen=True)
class Surroundings:
    """See the module."""

    settings: NotifierSettings
    allowed: AllowList
    #: whether an address and port are the mesh's own
    is_own: Callable[[str, int], bool]
    metrics: PushMetrics
    #: messages in records read from the log
    messages: Callable[[Slice], list[NotifyMessage]]
    history: Callable[[int, int], FeedHistory]
    #: where the live reader stands in a partition
    live: Callable[[int], int]
    save: Callable[[NotifyTarget, int, Mark], None]
    #: called after marks have moved
    on_settled: Callable[[NotifyTarget], None]
    #: whether the maker of a stream may have hosts notified that are not `allowed`
    may_go_anywhere: Callable[[int], bool] = lambda _: False
    #: whether a user who may have any host notified has a stream with this target
    may_be_any_host: Callable[[NotifyTarget], bool] = lambda _: False
    clock: Clock = SystemClock()

    def encryption(self, target: NotifyTarget) -> ssl.SSLContext | None:
        """Return what a connection to *target* trusts; None: it is not encrypted. Raises
        ConfigError.
        """
        return self._trusted if endpoint(target.url).scheme in ("https", "wss") else None

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        return tls.client(self.settings.tls_ca)

    async def find(self, target: NotifyTarget) -> Resolved:
        """Find the address of *target* that may be connected to now. Raises TargetRefused,
        OSError.
        """
        return await resolve(
            endpoint(target.url),
            self.allowed,
            self.is_own,
            anywhere=self.may_be_any_host(target),
        )

"""Settings of the notifier."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from penstock.settings import Port, Settings


class NotifierSettings(Settings):
    """`port` serves `/ws`."""

    room: ClassVar[str] = "notifier"

    port: Port = 7701
    #: newest records of a topic kept in memory for subscribers; who is further behind reads from Kafka
    feed_bytes: int = Field(default=32 << 20, ge=1 << 16)
    max_clients: int = Field(default=1_000, ge=1)
    max_subscriptions: int = Field(default=64, ge=1, description="per connection")
    #: browsers may connect only from pages of these origins (others don't send one)
    origins: tuple[str, ...] = ()
    ping_seconds: float = Field(default=20.0, gt=0)

"""Settings of the notifier."""

from __future__ import annotations

import socket
from typing import ClassVar

from pydantic import Field

from penstock.config.settings import Port, Settings


class NotifierSettings(Settings):
    """`port` serves `/ws`."""

    service: ClassVar[str] = "notifier"

    port: Port = 7701
    #: newest records of a topic kept in memory for subscribers; who is further behind reads from
    #: Kafka
    feed_bytes: int = Field(default=32 << 20, ge=1 << 16)
    max_clients: int = Field(default=1_000, ge=1)
    max_clients_per_address: int = Field(default=1_000, ge=1)
    max_subscriptions: int = Field(default=64, ge=1, description="per connection")
    #: browsers may connect only from pages of these origins (others don't send one)
    origins: tuple[str, ...] = ()
    #: how long a page may take for the message that logs it in
    login_seconds: float = Field(default=5.0, gt=0)
    ping_seconds: float = Field(default=20.0, gt=0)
    ack_seconds: float = Field(
        default=20.0, gt=0, description="how long a client or target may take to answer"
    )

    #: name of this process among notifiers, the same after a restart; default: the name of the
    #: machine or container
    instance: str = Field(default_factory=socket.gethostname)
    #: hosts (`*.example.com`), addresses and networks that NOTIFY may connect to, and topics that
    #: it may write (`kafka://alerts-*`); empty: any for who has ADMIN, none for others
    notify_allow: tuple[str, ...] = ()
    #: messages that wait for one target in memory, per partition; what is past it waits in Kafka
    push_bytes: int = Field(default=1 << 20, ge=1 << 12)
    #: a stream with ON_FAILURE PAUSE whose target is further behind is paused until half of it is
    #: delivered
    pause_bytes: int = Field(default=256 << 20, ge=1 << 12)
    connect_seconds: float = Field(default=10.0, gt=0)
    #: wait between attempts to reach a target that is down: doubles from the first to the second
    retry_min: float = Field(default=0.05, gt=0)
    retry_max: float = Field(default=2.0, gt=0)
    #: the same of http:// and https:// targets
    http_retry_max: float = Field(default=30.0, gt=0)

"""Settings of the federation service."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from penstock.config.settings import Port, Settings


class FederationSettings(Settings):
    """`port` serves `/link`; once there is a certificate `tls_port` does, with TLS, and `port` no
    more.
    """

    service: ClassVar[str] = "federation"

    port: Port = 7707
    tls_port: Port = 7708

    #: newest records of a topic kept in memory for subscribers; who is further behind reads from
    #: Kafka
    feed_bytes: int = Field(default=32 << 20, ge=1 << 16)
    max_links: int = Field(default=1_000, ge=1)
    #: subscriptions, questions and appends under way on one link
    max_channels: int = Field(default=256, ge=1)
    #: rows of one message
    frame_rows: int = Field(default=50_000, ge=1)
    ping_seconds: float = Field(default=10.0, gt=0)
    ack_seconds: float = Field(
        default=20.0, gt=0, description="how long the other side may take to answer a ping"
    )
    connect_seconds: float = Field(default=5.0, gt=0)

    #: wait between attempts of a view to reach its source or target: doubles from the first to the
    #: second
    retry_min: float = Field(default=0.1, gt=0)
    retry_max: float = Field(default=2.0, gt=0)
    #: how often a view notes how far it has come (what lies behind it is asked of the target)
    checkpoint_seconds: float = Field(default=0.5, gt=0)
    #: frames of a view that may be without an answer
    window: int = Field(default=16, ge=1, le=64)

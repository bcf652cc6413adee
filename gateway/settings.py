"""Settings of the gateway. `penstock.config.settings` has the shared ones and how they are read."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import ClassVar

from pydantic import Field, field_validator

from penstock.config.settings import Port, Settings

#: one of them has whatever stands between a port that is published here and the gateway
_PRIVATE = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")))


def partitions_here() -> int:
    """Return one for each core of this machine, two to four.

    Each is a process that works on it, most of whose cost is the same however much there is to do:
    of more than there are cores each has less to do at a time, and waits for its turn.
    """
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(max(cores, 2), 4)


class GatewaySettings(Settings):
    """Settings of the gateway. It binds to loopback unless `host` says otherwise."""

    service: ClassVar[str] = "gateway"
    reference_names: ClassVar[Mapping[str, str]] = {
        **Settings.reference_names,
        "notify_allow": "PENSTOCK_NOTIFIER_NOTIFY_ALLOW",
    }

    port: Port = 7700

    #: serve the PostgreSQL wire, for reading, at a port of its own
    postgres: bool = False
    postgres_port: Port = 7706
    #: networks that its passwords may come from without TLS, besides this machine: that of a proxy
    #: on a private network
    postgres_clear: tuple[IPv4Network | IPv6Network, ...] = ()
    #: address at which a proxy publishes the port; when it is a loopback address, only this machine
    #: reaches the proxy, and passwords may come from private networks, on one of which the proxy is
    postgres_published: IPv4Address | IPv6Address | None = None

    #: largest request body and WebSocket frame, bytes
    max_body: int = Field(16 << 20, ge=1024)
    #: rows waiting for Kafka: bytes and writes; beyond, clients are told to wait
    max_pending_bytes: int = Field(128 << 20, ge=1 << 20)
    max_pending_writes: int = Field(50_000, ge=1)
    #: seconds until a record that Kafka has not confirmed has failed
    ack_timeout: float = Field(10.0, gt=0)
    #: frames of one WebSocket connection that may be unacknowledged
    window: int = Field(64, ge=1, le=4096)
    #: seconds that a SELECT may take, with what it waits for: the store to have what this gateway
    #: acked
    query_timeout: float = Field(300.0, gt=0)
    #: SELECTs of one user that run at once, and that wait for their turn behind them; 0 at once: as
    #: many as come
    max_queries_per_user: int = Field(8, ge=0)
    max_waiting_queries: int = Field(64, ge=0)
    #: statement results larger than this many rows are cut off with an error
    max_result_rows: int = Field(1_000_000, ge=1)
    #: and those larger than this many bytes of Arrow
    max_result_bytes: int = Field(256 << 20, ge=1)
    #: seconds to wait for a new topic to be read, a new stream to be live, a drain to end
    live_timeout: float = Field(30.0, gt=0)
    #: wait at CREATE DATABASE and CREATE STREAM for spark_jobs; False where it is not running
    wait_for_jobs: bool = True
    #: partitions of a database whose CREATE says nothing of them: one for each core, two to four
    partitions: int = Field(default_factory=partitions_here, ge=1)
    #: requests a second of one user, with twice that at once; 0: as many as come
    max_requests_per_second: float = Field(0, ge=0)
    #: requests and WebSockets that one address may have open; 0: as many as come
    max_open_per_address: int = Field(2_000, ge=0)
    #: pages that may open WebSockets and call us from a browser, besides our own
    allowed_origins: tuple[str, ...] = ()
    #: take CREATE FUNCTION: code of clients that the stream jobs run, confined to processes of its
    #: own
    allow_functions: bool = False
    #: the notifier's list of hosts that NOTIFY may connect to, to refuse others at CREATE STREAM
    notify_allow: tuple[str, ...] = ()
    #: where other gateways reach this one; empty: host and port, or this machine's name and port
    #: where `host` is every address
    advertised_url: str = ""

    @field_validator("postgres_published", mode="before")
    @classmethod
    def _without_brackets(cls, value: object) -> object:
        """Take an IPv6 address as a published port names it, and nothing as no address."""
        return (value.strip("[]") or None) if isinstance(value, str) else value

    @property
    def trusted_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return the networks that passwords of the PostgreSQL wire may come from without TLS."""
        at = self.postgres_published
        return (*self.postgres_clear, *_PRIVATE) if at and at.is_loopback else self.postgres_clear

    @property
    def reached_at(self) -> str:
        """Return the address this gateway gives to others."""
        host = socket.gethostname() if self.host in ("0.0.0.0", "::") else self.host
        return self.advertised_url or f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"

"""Which addresses NOTIFY and external streams may connect to.

A name is resolved once per connection and the address that was checked is the one connected to, so
an answer that changes in between (DNS rebinding) gains nothing. Addresses that only make sense as
an attack (link-local, cloud metadata, multicast, unspecified, IPv4 inside IPv6) are refused unless
the allow-list names their network. `penstock.outbound.reach` adds who may name what, and what is
the mesh itself.
"""

from __future__ import annotations

import asyncio
import fnmatch
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from penstock import names
from penstock.errors import PenstockError
from penstock.outbound.kafka_topic import is_kafka, topic_of

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: addresses that are refused unless the allow-list names their network
_NEVER_BY_DEFAULT = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",  # this host
        # link-local, with the metadata of AWS, Azure, Google, Oracle, OpenStack, Tencent and others
        "169.254.0.0/16",
        "100.100.100.200/32",  # metadata of Alibaba
        "168.63.129.16/32",  # agent of Azure
        "192.0.0.0/24",  # metadata of Oracle's older images, and other assignments of the protocol
        "192.80.8.124/32",  # metadata of Equinix
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "::/96",  # unspecified, and IPv4 in its deprecated form
        "::ffff:0:0/96",  # IPv4-mapped
        "::ffff:0:0:0/96",  # IPv4-translated
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",
        "100::/64",  # discard
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "fd00:ec2::/32",  # metadata of AWS
        "fd20:ce::254/128",  # metadata of Google
        "fd00:c1::a9fe:a9fe/128",  # metadata of Oracle
        "fd00:42::42/128",  # metadata of Scaleway
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local
        "ff00::/8",  # multicast
    )
)
_LOOPBACK_V6 = ipaddress.IPv6Address("::1")
#: names under which clouds answer with credentials of the machine; only an allow-list that spells
#: one out opens it
_METADATA_NAMES = (
    "metadata",
    "metadata.*",
    "*.metadata.google.internal",
    "instance-data",
    "instance-data.*",
)

#: of addresses that say no port
_WEB_PORTS = {"http": 80, "https": 443}

NOTIFY_HINT = (
    "PENSTOCK_NOTIFIER_NOTIFY_ALLOW lists hosts and networks that may; streams of users with ADMIN"
    " may notify any other, too"
)
TOPIC_HINT = (
    "PENSTOCK_NOTIFIER_NOTIFY_ALLOW lists topics that may, as kafka://topic; streams of users with"
    " ADMIN may notify any other that is not Penstock's, too"
)


class TargetRefused(PenstockError):
    code = "E_NOTIFY_TARGET"


@dataclass(frozen=True)
class Endpoint:
    """Host and port of a NOTIFY URL; `label` is fit for logs (no path, no query, no user)."""

    scheme: str
    host: str
    port: int

    @property
    def label(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"


def endpoint(url: str) -> Endpoint:
    """The endpoint of *url*.

    Raises:
        TargetRefused: it is not `ws://` or `wss://` with host and port, nor `http://` or `https://`
            with a host.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        # the parser's words may hold a password
        raise TargetRefused("the address cannot be read") from None
    scheme = parts.scheme.lower()
    if port is None:
        port = _WEB_PORTS.get(scheme)
    if scheme not in ("ws", "wss", *_WEB_PORTS) or not host or not port:
        raise TargetRefused("the address needs ws://, wss://, http:// or https://, host and port")
    return Endpoint(scheme, host, port)


def is_web(url: str) -> bool:
    """Tell whether *url* is `http://` or `https://`."""
    return url.partition(":")[0].lower() in _WEB_PORTS


def label_of(url: str) -> str:
    """Return scheme, host and port of a URL, or its topic, fit for logs."""
    if is_kafka(url) and names.is_topic_name(topic_of(url)):
        return f"kafka://{topic_of(url)}"
    try:
        return endpoint(url).label
    except TargetRefused:
        return "an address that cannot be read"


class AllowList:
    """Patterns of host names (`*.example.com`), addresses, networks, and of topics
    (`kafka://alerts-*`); empty: all hosts but those that are refused by default, and no topic.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._hosts: list[str] = []
        self._topics: list[str] = []
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for pattern in patterns:
            if is_kafka(pattern):
                self._topics.append(topic_of(pattern))
                continue
            try:
                self._networks.append(ipaddress.ip_network(pattern, strict=False))
            except ValueError:
                self._hosts.append(pattern.lower())

    def permits(self, host: str, address: Address, *, anywhere: bool = False) -> bool:
        """Whether *host*, which resolved to *address*, may be connected to; *anywhere*: by somebody
        who may name any host.
        """
        if any(address in network for network in self._networks):
            return True
        if any(address in network for network in _NEVER_BY_DEFAULT) and address != _LOOPBACK_V6:
            return False
        return self.permits_name(host, anywhere=anywhere)

    def is_metadata(self, host: str) -> bool:
        """Tell whether *host* is a name of a cloud's metadata that is not listed itself."""
        name = host.lower().rstrip(".")
        return name not in self._hosts and any(
            fnmatch.fnmatchcase(name, pattern) for pattern in _METADATA_NAMES
        )

    def permits_name(self, host: str, *, anywhere: bool = False) -> bool:
        """Tell whether a *host* without an address may be named; *anywhere* as for `permits`."""
        name = host.lower().rstrip(".")
        if self.is_metadata(name):
            return False
        return (
            anywhere
            or not (self._hosts or self._networks or self._topics)
            or any(fnmatch.fnmatchcase(name, pattern) for pattern in self._hosts)
        )

    def permits_topic(self, topic: str) -> bool:
        """Tell whether users without ADMIN may have events written to *topic*."""
        return any(fnmatch.fnmatchcase(topic, pattern) for pattern in self._topics)


@dataclass(frozen=True)
class Resolved:
    """The address to connect to; `listed`: anybody's messages may go there, else only those of
    users who may name any host.
    """

    address: str
    listed: bool


async def resolve(
    target: Endpoint,
    allowed: AllowList,
    is_own: Callable[[str, int], bool] = lambda *_: False,
    *,
    anywhere: bool = False,
) -> Resolved:
    """The address to connect to.

    Args:
        target: where a message goes.
        allowed: hosts and networks that may be connected to.
        is_own: tells whether an address and port are the mesh's own. Blocks.
        anywhere: somebody who may name any host has named this one.

    Raises:
        TargetRefused: the name has addresses, but none that is allowed.
        OSError: the name has no address.
    """
    found = await asyncio.get_running_loop().getaddrinfo(
        target.host, target.port, type=socket.SOCK_STREAM
    )
    for *_, where in found:
        text = str(where[0])
        address = ipaddress.ip_address(text.partition("%")[0])
        if not allowed.permits(target.host, address, anywhere=anywhere):
            continue
        if await asyncio.to_thread(is_own, text, target.port):
            raise own_target(target)
        return Resolved(text, allowed.permits(target.host, address))
    raise TargetRefused(f"{target.label} may not be notified", hint=NOTIFY_HINT)


def check_topic(topic: str, allowed: AllowList, *, anywhere: bool) -> None:
    """Check that events may be written to *topic* of the mesh's own broker.

    Args:
        topic: as the address says it.
        allowed: what the operator has listed.
        anywhere: a user who may name any has named this one.

    Raises:
        TargetRefused: they may not.
    """
    refused = f"{label_of(f'kafka://{topic}')} may not be notified"
    if not names.is_topic_name(topic) or names.is_own_topic(topic):
        raise TargetRefused(refused, hint="name a topic that is not Penstock's or Kafka's own")
    if not (anywhere or allowed.permits_topic(topic)):
        raise TargetRefused(refused, hint=TOPIC_HINT)


def own_target(target: Endpoint) -> TargetRefused:
    """The refusal of a target that is the mesh itself."""
    return TargetRefused(
        f"{target.label} may not be notified",
        detail="it is a port of this mesh",
        hint="name a receiver outside",
    )


def reason_of(error: BaseException) -> str:
    """Say what went wrong with a connection, without a word of what the other side has sent."""
    if isinstance(error, PenstockError):
        return error.message
    if isinstance(error, ConnectionClosed):
        if error.rcvd is None:
            return "the connection broke"
        return f"the connection was closed with code {error.rcvd.code}"
    if isinstance(error, InvalidStatus):
        return f"it answers with HTTP status {error.response.status_code}"
    if isinstance(error, WebSocketException):
        return "it does not answer as a WebSocket server does"
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    return _reason_of_system_error(error)


def _reason_of_system_error(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        return "it does not speak TLS as this side does"
    if isinstance(error, socket.gaierror):
        return "the name has no address"
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return type(error).__name__

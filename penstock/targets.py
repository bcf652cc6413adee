"""Which addresses NOTIFY and external streams may connect to.

A name is resolved once per connection and the address that was checked is the one connected to, so an answer that changes in between
(DNS rebinding) gains nothing. Addresses that only make sense as an attack (link-local, cloud metadata, multicast, unspecified) are refused
unless the allow-list names their network.
"""

from __future__ import annotations

import asyncio
import fnmatch
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from penstock.errors import CatalogError, PenstockError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NEVER_BY_DEFAULT = tuple(
    ipaddress.ip_network(n)
    for n in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "100.100.100.200/32", "224.0.0.0/4", "ff00::/8", "0.0.0.0/8", "::/128",
              "255.255.255.255/32")
)  # fmt: skip


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
        TargetRefused: it is not `ws://` or `wss://` with host and port.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise TargetRefused("the address cannot be read", detail=str(error)) from None
    if parts.scheme.lower() not in ("ws", "wss") or not host or not port:
        raise TargetRefused("the address needs ws:// or wss://, a host and a port")
    return Endpoint(parts.scheme.lower(), host, port)


class AllowList:
    """Patterns of host names (`*.example.com`), addresses and networks; empty: everything but what is refused by default."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._hosts: list[str] = []
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for pattern in patterns:
            try:
                self._networks.append(ipaddress.ip_network(pattern, strict=False))
            except ValueError:
                self._hosts.append(pattern.lower())

    def permits(self, host: str, address: Address) -> bool:
        """Whether *host*, which resolved to *address*, may be connected to."""
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(address in network for network in self._networks):
            return True
        if any(address in network for network in _NEVER_BY_DEFAULT):
            return False
        return not (self._hosts or self._networks) or any(fnmatch.fnmatchcase(host.lower(), pattern) for pattern in self._hosts)

    def permits_name(self, host: str) -> bool:
        """Whether a *host* without an address may be named."""
        return not (self._hosts or self._networks) or any(fnmatch.fnmatchcase(host.lower(), pattern) for pattern in self._hosts)


async def resolve(target: Endpoint, allowed: AllowList) -> str:
    """The address to connect to.

    Raises:
        TargetRefused: the name has addresses, but none that is allowed.
        OSError: the name has no address.
    """
    found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    for *_, where in found:
        text = str(where[0])
        if allowed.permits(target.host, ipaddress.ip_address(text.partition("%")[0])):
            return text
    raise TargetRefused(
        f"{target.label} may not be notified", detail=f"addresses {', '.join(sorted({str(w[0]) for *_, w in found}))}",
        hint="PENSTOCK_NOTIFIER_NOTIFY_ALLOW lists hosts and networks that may",
    )  # fmt: skip


def check_hosts(hosts: Sequence[str], patterns: Sequence[str]) -> None:
    """Whether every one of *hosts* may be connected to. Blocks. Raises CatalogError."""
    for host in hosts:
        checked(host, patterns)


def checked(host: str, patterns: Sequence[str]) -> list[str]:
    """The addresses of *host*, all of which an `AllowList` of *patterns* permits; none when nobody has that name now. Asked at CREATE and
    before each connection. Blocks. Raises CatalogError.
    """
    allowed = AllowList(patterns)
    try:
        found = list(dict.fromkeys(str(where[0]) for *_, where in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)))
    except OSError:
        # what the name may be is all that can be asked
        found = []
    if not all(allowed.permits(host, ipaddress.ip_address(text.partition("%")[0])) for text in found):
        raise CatalogError(
            f"{host} may not be connected to", code="E_EXTERNAL_HOST", detail=f"addresses {', '.join(sorted(found))}",
            hint="PENSTOCK_EXTERNAL_ALLOW lists hosts and networks that may",
        )  # fmt: skip
    if not found and not allowed.permits_name(host):
        raise CatalogError(f"{host} may not be connected to", code="E_EXTERNAL_HOST", hint="PENSTOCK_EXTERNAL_ALLOW lists hosts that may")
    return found

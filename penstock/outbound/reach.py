"""Where outbound connections may go: never to the mesh itself, elsewhere as the operator and the
maker's rights allow.

`Outbound(settings, access).reach(maker)` is what an external stream or a stream with NOTIFY of that
maker may connect to. It is asked at CREATE and before each connection; the addresses it returns are
the ones to dial.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from penstock.auth.access import Access
from penstock.config.environment import own_mesh
from penstock.config.settings import Settings
from penstock.errors import CatalogError
from penstock.outbound.kafka_topic import is_kafka, topic_of
from penstock.outbound.targets import (
    NOTIFY_HINT,
    AllowList,
    Endpoint,
    TargetRefused,
    check_topic,
    endpoint,
    own_target,
)
from penstock.runtime.mesh_members import members

#: seconds that the ports of the mesh's processes are remembered
_PORTS_SECONDS = 5.0
_HINT = (
    "PENSTOCK_EXTERNAL_ALLOW lists hosts and networks that may; users with ADMIN may name any"
    " other, too"
)
_OWN_HINT = "SELECT, streams and subscriptions read the mesh's own tables"
Place = tuple[str, int]


class _Listening:
    """The ports on which processes of the mesh on this machine listen. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: tuple[str, float, frozenset[int]] = ("", 0.0, frozenset())

    def ports(self, mesh: str) -> frozenset[int]:
        with self._lock:
            of, since, found = self._known
            if of != mesh or time.monotonic() - since > _PORTS_SECONDS:
                found = frozenset(_ports([psutil.Process(), *members(Path(mesh))]))
                self._known = mesh, time.monotonic(), found
            return found


def _ports(processes: Iterable[psutil.Process]) -> Iterable[int]:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            for connection in process.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    yield connection.laddr.port


_listening = _Listening()


@dataclass(frozen=True)
class Own:
    """What leads to the mesh itself.

    Attributes:
        places: host and port of its services, its Kafka and its Redis, as the settings name them.
        links: ports of its federation service, if links may go there.
        mesh: data directory that processes of an embedded mesh carry in their environment; empty:
            there is no such mesh.
        identity: what its links say of where they come from, so that its federation service refuses
            them whatever way they have taken;
            empty: they say nothing.
    """

    places: tuple[Place, ...] = ()
    links: frozenset[int] = frozenset()
    mesh: str = ""
    identity: str = ""

    @classmethod
    def of(cls, settings: Settings) -> Own:
        """Collect it from a service's settings."""
        urls = (
            settings.gateway_url,
            settings.notifier_url,
            settings.store_url,
            settings.federation_url,
        )
        places = [p for url in urls for p in _places(urlsplit(url).netloc)]
        places += _places(settings.kafka_bootstrap)
        places += _places(urlsplit(settings.redis_url).netloc)
        ports = {getattr(settings, name, 0) for name in ("port", "tls_port", "health_port")}
        places += [("127.0.0.1", port) for port in sorted(ports - {0})]
        named = tuple(dict.fromkeys(places))
        if not settings.external_self:
            return cls(named, mesh=own_mesh(), identity=identity_of(settings))
        links = frozenset(port for _, port in _places(urlsplit(settings.federation_url).netloc))
        if settings.service == "federation":
            links |= {getattr(settings, "port", 0), getattr(settings, "tls_port", 0)} - {0}
        return cls(named, links, own_mesh())

    def holds(self, address: str, port: int, *, link: bool = False) -> bool:
        """Tell whether *address* and *port* lead to the mesh itself. Blocks.

        Args:
            address: in numbers.
            port: at that address.
            link: the connection would be a link between deployments.
        """
        if link and port in self.links:
            return False
        here = _is_here(address)
        for host, own_port in self.places:
            if port == own_port and _leads_to(host, address, here=here):
                return True
        return bool(here and self.mesh) and port in _listening.ports(self.mesh)


@dataclass(frozen=True)
class Reach:
    """Where one connection may go.

    Attributes:
        patterns: the operator's allow-list.
        maker: the user who made what connects.
        anywhere: tells whether *maker* may name hosts that are not listed.
        own: the mesh itself.
        link: connections are links between deployments.
    """

    patterns: tuple[str, ...] = ()
    maker: str = ""
    anywhere: Callable[[], bool] = field(default=lambda: True, compare=False, repr=False)
    own: Own = field(default=Own(), repr=False)
    link: bool = False

    @property
    def nowhere(self) -> bool:
        """Tell that no connection is allowed at all."""
        return not (self.patterns or self.anywhere())

    def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of *host*, each of which may be dialled; none when nobody has that
        name now. Blocks.

        Raises:
            CatalogError: `E_EXTERNAL_HOST`: one of them may not be connected to.
        """
        allowed = AllowList(self.patterns)
        anywhere = self.anywhere()
        if not (self.patterns or anywhere) or allowed.is_metadata(host):
            raise _refusal(host)
        found = _addresses_of(host)
        if not all(
            allowed.permits(host, ipaddress.ip_address(a.partition("%")[0]), anywhere=anywhere)
            for a in found
        ):
            raise _refusal(host)
        if not found and not allowed.permits_name(host, anywhere=anywhere):
            raise _refusal(host)
        if any(self.own.holds(address, port, link=self.link) for address in found):
            raise own_host(host, f"port {port} there is this mesh itself")
        return found

    def check_notify(self, url: str) -> None:
        """Check the address of a NOTIFY target at CREATE; a name is resolved only when it is
        connected to. Blocks shortly.

        Raises:
            TargetRefused: it will never be notified.
        """
        if is_kafka(url):
            check_topic(topic_of(url), AllowList(self.patterns), anywhere=self.anywhere())
        else:
            self._check_endpoint(endpoint(url))

    def _check_endpoint(self, target: Endpoint) -> None:
        """Check a target that is dialled. Raises TargetRefused."""
        allowed = AllowList(self.patterns)
        anywhere = self.anywhere()
        numbers = _addresses_of(target.host, numeric=True)
        permitted = [
            allowed.permits(
                target.host, ipaddress.ip_address(a.partition("%")[0]), anywhere=anywhere
            )
            for a in numbers
        ]
        named = (
            all(permitted) if permitted else allowed.permits_name(target.host, anywhere=anywhere)
        )
        if not (self.patterns or anywhere) or (self.patterns and not named):
            raise TargetRefused(f"{target.label} may not be notified", hint=NOTIFY_HINT)
        if any(self.own.holds(address, target.port) for address in numbers):
            raise own_target(target)


class Outbound:
    """The operator's and the users' part of it, for one service."""

    def __init__(
        self, settings: Settings, access: Access, patterns: Sequence[str] | None = None
    ) -> None:
        """*patterns*: of an allow-list other than `external_allow`."""
        self.own = Own.of(settings)
        self._patterns = tuple(settings.external_allow if patterns is None else patterns)
        self._access = access

    def reach(self, maker: str, *, link: bool = False) -> Reach:
        """Return where things that *maker* has made may connect to; empty: made when nobody's name
        was kept.
        """
        return Reach(self._patterns, maker, lambda: self.anywhere(maker), self.own, link)

    def anywhere(self, maker: str) -> bool:
        """Tell whether things that *maker* has made may connect to hosts that the operator has not
        listed.
        """
        # when no name was kept, a list held for everybody
        return self._access.may(maker, "ADMIN", None) if maker else not self._patterns


def identity_of(settings: Settings) -> str:
    """What tells links of this mesh from those of others: as secret as a hash; empty: the mesh has
    no key to make it from.
    """
    key = settings.signing_key
    return (
        ""
        if key is None
        else hmac.new(
            key.encode(), b"penstock: from which mesh a link comes", hashlib.sha256
        ).hexdigest()[:32]
    )


def own_host(host: str, detail: str) -> CatalogError:
    """The refusal of a host that is the mesh itself."""
    return CatalogError(
        f"{host} may not be connected to", code="E_EXTERNAL_HOST", detail=detail, hint=_OWN_HINT
    )


def _refusal(host: str) -> CatalogError:
    return CatalogError(f"{host} may not be connected to", code="E_EXTERNAL_HOST", hint=_HINT)


def _places(netloc: str) -> list[Place]:
    """Return host and port of each address in `user@host:port,host:port`."""
    found = []
    for part in netloc.rpartition("@")[2].split(","):
        host, _, port = part.strip().rpartition(":")
        if host and port.isdigit():
            found.append((host.strip("[]"), int(port)))
    return found


def _addresses_of(host: str, *, numeric: bool = False) -> list[str]:
    """Return the addresses of a name, each once; with *numeric* only of what is an address itself,
    in any form of it.
    """
    flags = socket.AI_NUMERICHOST if numeric else 0
    try:
        return list(
            dict.fromkeys(
                str(where[0])
                for *_, where in socket.getaddrinfo(
                    host, None, type=socket.SOCK_STREAM, flags=flags
                )
            )
        )
    except (OSError, UnicodeError):
        return []


def _is_here(address: str) -> bool:
    """Tell whether a connection to *address* stays on this machine."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if parsed.is_loopback or parsed.is_unspecified:
        return True
    own = {
        a.address.partition("%")[0]
        for addresses in psutil.net_if_addrs().values()
        for a in addresses
    }
    return str(parsed) in own


def _leads_to(host: str, address: str, *, here: bool) -> bool:
    """Tell whether *host* has *address* or, where that is one of this machine, another of it."""
    return any(found == address or (here and _is_here(found)) for found in _addresses_of(host))

"""The brokers of a foreign topic: checked before each connection, and never the mesh's own Kafka,
whatever name leads there.

Without TLS, brokers are dialled at the addresses that were checked. What brokers say of themselves
is checked, too: the id of the cluster, and the addresses at which they want to be reached.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from penstock.bus import Admin, Cluster
from penstock.errors import BusError, CatalogError
from penstock.foreign.topic import Topic
from penstock.outbound.reach import Own, Reach


class Home:
    """The mesh's own Kafka, asked once for who it is."""

    def __init__(self, ask: Callable[[], Cluster]) -> None:
        self._ask = ask

    @cached_property
    def cluster(self) -> Cluster:
        """Raises BusError."""
        return self._ask()


@dataclass(frozen=True)
class Brokers:
    """A foreign Kafka that may be spoken to.

    Attributes:
        bootstrap: what a client dials.
        admin: a client of it.
    """

    bootstrap: str
    admin: Admin
    _topic: Topic
    _reach: Reach
    _home: Home

    def check(self) -> None:
        """Ask the brokers who they are, as they may have changed that. Raises CatalogError,
        BusError.
        """
        with quiet(self._topic):
            found = self.admin.cluster()
        home = self._home.cluster
        if found.id and found.id == home.id:
            raise _own(self._topic)
        for host, port in found.brokers:
            addresses = self._reach.addresses(host, port)
            if any(_is_own(address, port, home) for address in addresses):
                raise _own(self._topic)


def reach_brokers(
    topic: Topic, password: str, reach: Reach, home: Home, *, client_id: str, timeout: float
) -> Brokers:
    """Return the topic's brokers, checked. Blocks.

    Raises:
        CatalogError: `E_EXTERNAL_HOST`: they may not be connected to.
        BusError: nobody answers.
    """
    if topic.registry_place is not None:
        reach.addresses(*topic.registry_place)
    dialled = []
    for host, port in topic.places:
        addresses = reach.addresses(host, port)
        if any(_is_own(address, port, home.cluster) for address in addresses):
            raise _own(topic)
        dialled += [f"[{a}]:{port}" if ":" in a else f"{a}:{port}" for a in addresses]
    if not dialled:
        raise BusError(
            "the other Kafka cannot be reached", detail="nobody has that name", retryable=True
        )
    # certificates are of names
    bootstrap = topic.brokers if topic.protocol.endswith("SSL") else ",".join(dialled)
    admin = Admin(bootstrap, client_id=client_id, timeout=timeout, options=topic.options(password))
    found = Brokers(bootstrap, admin, topic, reach, home)
    found.check()
    return found


@contextlib.contextmanager
def quiet(topic: Topic) -> Iterator[None]:
    """Raise errors of the other Kafka without the words of whoever answered there."""
    try:
        yield
    except BusError as error:
        if error.code != "E_BUS":
            raise
        name = error.detail.partition(":")[0]
        raise BusError(
            "the other Kafka cannot be used",
            detail=name if name.strip("_").isupper() else "",
            topic=topic.topic,
            retryable=error.retryable,
        ) from None


def _is_own(address: str, port: int, home: Cluster) -> bool:
    """Tell whether a broker of the mesh says that it is at this address."""
    return Own(tuple(place for place in home.brokers if place[1] == port)).holds(address, port)


def _own(topic: Topic) -> CatalogError:
    return CatalogError(
        f"{topic.brokers} may not be connected to",
        code="E_EXTERNAL_HOST",
        detail="it is the mesh's own Kafka",
        hint="SELECT, streams and subscriptions read the mesh's own tables",
    )

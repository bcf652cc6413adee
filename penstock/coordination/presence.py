"""Who is there: a key in Redis for each node that lives, with its address, its tables and what it
leads.

Addresses stay known when Redis is away, so nodes and clients still find each other. Refused:
deciding who leads; that is the lease's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis

from penstock import names
from penstock.config.raft import RaftGroups
from penstock.errors import RemoteError


@dataclass(frozen=True)
class Presence:
    """What a node says of itself."""

    node: str
    url: str
    #: a process that died and came back is another one
    run: str
    tables: tuple[int, ...] = ()
    #: group → epoch it leads under and serves all its tables
    leads: dict[int, int] = field(default_factory=dict)
    #: where clients reach it; empty: where everybody does
    client_url: str = ""

    def to_json(self) -> str:
        leads = {str(g): e for g, e in self.leads.items()}
        body = {
            "node": self.node,
            "url": self.url,
            "run": self.run,
            "tables": list(self.tables),
            "leads": leads,
        }
        return json.dumps({**body, "client_url": self.client_url})

    @classmethod
    def from_json(cls, text: str | bytes) -> Presence:
        body: Any = json.loads(text)
        leads = {int(g): int(e) for g, e in body["leads"].items()}
        return cls(
            body["node"],
            body["url"],
            body["run"],
            tuple(body["tables"]),
            leads,
            body.get("client_url", ""),
        )


class Registry:
    """One per process."""

    def __init__(self, client: redis.Redis, ttl: float) -> None:
        self._redis = client
        self._ttl = ttl
        #: the last address of each node, for nodes and gateways
        self.urls: dict[str, str] = {}
        #: … and for clients
        self.client_urls: dict[str, str] = {}

    def beat(self, presence: Presence) -> None:
        """Say that this node lives. Raises RemoteError."""
        try:
            self._redis.set(
                names.node_heartbeat(presence.node), presence.to_json(), px=int(self._ttl * 1000)
            )
        except redis.RedisError as down:
            raise _down(down) from None

    def alive(self, nodes: Sequence[str]) -> dict[str, Presence]:
        """Those of *nodes* that live. Raises RemoteError."""
        try:
            found = self._redis.mget([names.node_heartbeat(n) for n in nodes]) if nodes else []
        except redis.RedisError as down:
            raise _down(down) from None
        alive = {
            n: Presence.from_json(text)
            for n, text in zip(nodes, found, strict=True)
            if text is not None
        }
        self.urls |= {n: p.url for n, p in alive.items()}
        self.client_urls |= {n: p.client_url or p.url for n, p in alive.items()}
        return alive

    def describe(
        self, groups: RaftGroups, tables: Mapping[str, int], urls: dict[str, str]
    ) -> dict[str, Any]:
        """Return what clients need to find the nodes of stream tables.

        Args:
            groups: of nodes.
            tables: full name of each stream table, and the number of its group.
            urls: `urls` or `client_urls` of this registry, which is brought up to date.
        """
        nodes: dict[str, str | None] = dict.fromkeys(groups.nodes)
        try:
            alive: dict[str, Presence] = self.alive(groups.nodes)
        except RemoteError:
            alive = {}
        nodes |= urls
        known = [
            {
                "id": g.id,
                "alias": g.alias,
                "members": g.members,
                "learners": g.learners,
                "leader": _leader(g.id, alive),
            }
            for g in groups.groups
        ]
        return {"groups": known, "nodes": nodes, "alive": sorted(alive), "tables": dict(tables)}

    def leave(self, node: str) -> None:
        """Say good-bye; nobody need wait for the key to run out."""
        try:
            self._redis.delete(names.node_heartbeat(node))
        except redis.RedisError:
            return


def _leader(group: int, alive: Mapping[str, Presence]) -> str | None:
    """Return the node that says it leads *group*, under the newest epoch; None: nobody does."""
    leading = {node: p.leads[group] for node, p in alive.items() if group in p.leads}
    return max(leading, key=leading.__getitem__, default=None)


def _down(error: redis.RedisError) -> RemoteError:
    return RemoteError("Redis does not answer", code="E_REDIS_DOWN", detail=str(error)[:200])

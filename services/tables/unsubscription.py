"""The end of a subscription by request, on whichever nodes its programs are connected."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from aiohttp import web

from penstock.coordination.presence import Registry
from penstock.errors import CatalogError, RemoteError
from penstock.runtime.log import get
from services.tables.forward import Forward
from services.tables.lookup import USER, Lookup
from services.tables.replica import Replica
from services.tables.settings import TablesSettings
from services.tables.shared_subscription import group_id
from services.tables.subscriber import Subscriber
from services.tables.subscription_offsets import SubscriptionOffsets, is_forwarded

log = get(__name__)
_PEER_S = 3.0


@dataclass
class _Ending:
    """A request to end the subscriptions of one name, and what came of it so far."""

    replica: Replica
    action: str
    #: who asks
    user: str
    body: dict[str, Any]
    ended: int = 0
    #: whose those were
    owners: set[str] = field(default_factory=set)
    #: there is one that *user* may not end
    refused: bool = False


class Unsubscription:
    """Event loop only."""

    def __init__(
        self,
        settings: TablesSettings,
        tables: Lookup,
        registry: Registry,
        others: Forward,
        offsets: SubscriptionOffsets,
        connected: Set[Subscriber],
    ) -> None:
        """*connected*: the subscribers on this node."""
        self._settings = settings
        self._tables = tables
        self._registry = registry
        self._others = others
        self._offsets = offsets
        self._connected = connected

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/unsubscribe", self.take)]

    async def take(self, request: web.Request) -> web.Response:
        """End the caller's subscription wherever it is connected; with ADMIN on the table
        everybody's of this name.
        """
        body = json.loads(await request.read())
        from_node = is_forwarded(request, self._tables.access.root)
        user = str(body["user"]) if from_node else request[USER]
        replica = self._tables.by_name(user, "READ", str(body["table"]))
        ending = _Ending(replica, str(body.get("action", "")), user, body)
        self._end_here(ending, str(body.get("by", request.remote)))
        if from_node and ending.refused and not ending.ended:
            self._tables.access.require(user, "ADMIN", replica.table)
        replica.wake()
        if not from_node:
            await self._end_elsewhere(ending)
            self._require_any(ending)
            if body.get("remove_offset", True):
                await self._forget_offsets(ending)
        return web.json_response({"ended": ending.ended, "users": sorted(ending.owners)})

    def _end_here(self, ending: _Ending, by: str) -> None:
        """End those that are connected here and the user may end. Raises CatalogError."""
        named = [
            s for s in self._connected if s.replica is ending.replica and s.action == ending.action
        ]
        found = self._may_end(ending, named)
        self._check_group(found, ending.body.get("raft_group"))
        for subscriber in found:
            subscriber.cancelled = by
        ending.ended = len(found)
        ending.owners = {s.user for s in found}
        ending.refused = bool(named)

    def _may_end(self, ending: _Ending, named: Sequence[Subscriber]) -> Sequence[Subscriber]:
        if self._tables.access.may(ending.user, "ADMIN", ending.replica.table):
            return named
        return [s for s in named if s.user.lower() == ending.user.lower()]

    def _check_group(self, found: Sequence[Subscriber], wanted: Any) -> None:
        """Refuse a request that does not name the raftGroup of what it ends."""
        for subscriber in found:
            if subscriber.group == group_id(self._settings, wanted):
                continue
            hint = "client.ha.unsubscribe without raft_group"
            if subscriber.group:
                hint = f"client.ha.unsubscribe(…, raft_group={subscriber.group})"
            raise CatalogError(
                f"raftGroup of subscription {subscriber.topic} is {subscriber.group or 'none'}",
                code="E_RAFT_GROUP",
                hint=hint,
            )

    def _require_any(self, ending: _Ending) -> None:
        """Raise an error when nothing was ended: AuthError if there is one that the user may not
        end, else CatalogError.
        """
        if ending.ended:
            return
        if ending.refused:
            self._tables.access.require(ending.user, "ADMIN", ending.replica.table)
        raise CatalogError(
            f"there is no subscription {ending.replica.name}/{ending.action}",
            code="E_NO_SUBSCRIPTION",
            hint="client.ha.stat() lists those there are",
        )

    async def _forget_offsets(self, ending: _Ending) -> None:
        """Forget how far the subscriptions were."""
        users = self._tables.catalog.catalog.user
        root = self._tables.access.root
        owners = ending.owners | {ending.user}
        there = [o for o in owners if o == root or users(o) is not None]
        for name in sorted(self._offsets.name(ending.action, owner) for owner in there):
            if ending.replica.copy.producers.get(name) is not None:
                await self._offsets.note(ending.replica, name, -1)

    async def _end_elsewhere(self, ending: _Ending) -> None:
        """Have the other nodes of the group end it, too. Raises CatalogError."""
        body = json.dumps(ending.body | {"user": ending.user}).encode()
        for node in self._tables.standing(ending.replica).group.nodes:
            url = self._registry.urls.get(node)
            if url is None or node == self._tables.alias:
                continue
            try:
                status, answer = await self._others.call(
                    "POST", f"{url}/v1/unsubscribe", body, timeout=_PEER_S
                )
            except RemoteError as away:
                log.info("a node was not asked about a subscription", node=node, reason=away.detail)
            else:
                _count_answer(ending, status, answer)


def _count_answer(ending: _Ending, status: int, answer: Any) -> None:
    """Take over what another node has ended or refused. Raises CatalogError."""
    if status == HTTPStatus.FORBIDDEN:
        ending.refused = True
    if status == HTTPStatus.BAD_REQUEST and answer["error"]["code"] == "E_RAFT_GROUP":
        raise CatalogError(
            answer["error"]["message"], code="E_RAFT_GROUP", hint=answer["error"]["hint"]
        )
    if status == HTTPStatus.OK:
        ending.ended += int(answer["ended"])
        ending.owners.update(answer.get("users", ()))

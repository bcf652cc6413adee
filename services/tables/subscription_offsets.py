"""How far each subscription has worked off its rows, as the table's log has it: kept by whoever
leads.
"""

from __future__ import annotations

import asyncio
import json

from aiohttp import web

from penstock.errors import AuthError, RemoteError
from services.tables.forward import Forward
from services.tables.lookup import FORWARDED, USER, Lookup
from services.tables.replica import Replica
from services.tables.stamp import WritePart
from services.tables.writes import Offset, offset_producer


def is_forwarded(request: web.Request, root: str) -> bool:
    """Tell if another node of the mesh, which comes as *root*, sends this."""
    return FORWARDED in request.headers and request[USER] == root


class SubscriptionOffsets:
    """Event loop only."""

    def __init__(self, tables: Lookup, others: Forward) -> None:
        self._tables = tables
        self._others = others

    def routes(self) -> list[web.RouteDef]:
        path = "/v1/tables/{db}/{table}/offset"
        return [web.get(path, self.answer), web.post(path, self.take)]

    def name(self, action: str, user: str) -> str:
        """Return the name of the offset that *user*'s subscription has."""
        if user == self._tables.access.root:
            return offset_producer(action)
        known = self._tables.catalog.catalog.user(user)
        if known is None:
            raise AuthError(f"there is no user {user}", code="E_AUTH")
        return offset_producer(action, known.id)

    def find(self, replica: Replica, action: str, user: str) -> WritePart | None:
        """Return how far *user*'s subscription is. One of earlier versions, which noted no user,
        counts until there is one.
        """
        producers = replica.copy.producers
        return producers.get(self.name(action, user)) or producers.get(offset_producer(action))

    async def submit(self, replica: Replica, place: str, row: int) -> None:
        kept: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._tables.session(replica).submit(Offset(place, row, kept))
        await kept

    async def note(self, replica: Replica, place: str, row: int) -> None:
        """Keep how far a subscription is, on whichever node leads."""
        try:
            await self.submit(replica, place, row)
        except RemoteError as error:
            standing = self._tables.standing(replica)
            if error.code != "E_NOT_LEADER" or standing.leader in ("", self._tables.alias):
                raise
            database, _, name = replica.name.partition(".")
            body = json.dumps({"place": place, "row": row}).encode()
            status, answer = await self._others.call(
                "POST", f"{standing.url}/v1/tables/{database}/{name}/offset", body
            )
            if status != 200:
                raise RemoteError(
                    "the leader did not take an offset", detail=str(answer)[:200]
                ) from error

    async def answer(self, request: web.Request) -> web.Response:
        """Say how far a subscription of the caller's is."""
        replica = self._tables.of_request(request, "READ")
        known = self.find(replica, request.query.get("action", ""), request[USER])
        return web.json_response({"row": known.sequence if known is not None else -1})

    async def take(self, request: web.Request) -> web.Response:
        """Move an offset of the caller's own; another node passes on one of anybody."""
        replica = self._tables.of_request(request, "READ")
        body = json.loads(await request.read())
        if is_forwarded(request, self._tables.access.root) and "place" in body:
            await self.submit(replica, str(body["place"]), int(body["row"]))
        else:
            await self.note(
                replica, self.name(str(body["action"]), request[USER]), int(body["row"])
            )
        return web.json_response({})

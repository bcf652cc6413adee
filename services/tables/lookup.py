"""A node's tables as requests ask for them: found by name, for who has the right, and who leads
each.
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from penstock.auth.access import Access
from penstock.catalog.model import Right
from penstock.catalog.reader import CatalogReader
from penstock.errors import CatalogError, SchemaError
from services.tables.election import Election, GroupStanding
from services.tables.keeper import ReplicaKeeper
from services.tables.leadership_term import not_leader
from services.tables.replica import Replica
from services.tables.session import LeaderSession

#: where a request says whose it is
USER = "user"
#: in a request that another node passes on, which this one must not
FORWARDED = "X-Penstock-Forwarded"


class Lookup:
    """Event loop only."""

    def __init__(
        self,
        alias: str,
        catalog: CatalogReader,
        keeper: ReplicaKeeper,
        election: Election,
        access: Access,
    ) -> None:
        """`alias`: of this node."""
        self.alias = alias
        self.catalog = catalog
        self.access = access
        self._keeper = keeper
        self._election = election

    def replica(self, database: str, table: str) -> Replica:
        found = self._keeper.find(database, table)
        if found is not None:
            return found
        entry = self.catalog.catalog.table(database, table)
        if entry is not None and entry.replicated is not None:
            raise CatalogError(
                f"node {self.alias} has no copy of {database}.{table}",
                code="E_NO_TABLE",
                detail=f"its group is {entry.replicated.group}",
                hint="ask a node of that group",
            )
        kind = "is no stream table of a group" if entry is not None else "does not exist"
        raise CatalogError(f"table {database}.{table} {kind}", code="E_NO_TABLE")

    def of_request(self, request: web.Request, right: Right) -> Replica:
        """Find the table of the path, for somebody who needs *right*."""
        return self._for(
            request[USER], right, request.match_info["db"], request.match_info["table"]
        )

    def by_name(self, user: str, right: Right, name: str) -> Replica:
        database, dot, table = name.partition(".")
        if not dot:
            raise SchemaError("a table is database.name", code="E_BODY")
        return self._for(user, right, database, table)

    def _for(self, user: str, right: Right, database: str, table: str) -> Replica:
        """Find a table; without the right nobody is told whether it exists. Raises AuthError,
        CatalogError.
        """
        entry = self.catalog.catalog.table(database, table)
        if entry is None:
            self.access.require_named(user, right, database, table)
        else:
            self.access.require(user, right, entry)
        return self.replica(database, table)

    def visible_to(self, request: web.Request) -> list[Replica]:
        """Return the tables that the caller has some right on."""
        return [r for r in self._keeper.all() if self.access.sees(request[USER], r.table)]

    def standing(self, replica: Replica) -> GroupStanding:
        return self._election.standings[replica.replicated.group]

    def session_of(self, replica: Replica) -> LeaderSession | None:
        """The session of a table that this node leads."""
        return self._election.session(replica.replicated.group, replica.table.id)

    def session(self, replica: Replica) -> LeaderSession:
        """The same. Raises RemoteError (`E_NOT_LEADER`), which says who does."""
        session = self.session_of(replica)
        if session is None:
            standing = self.standing(replica)
            why = (
                f"{standing.leader} leads"
                if standing.leader
                else standing.missing() or "nobody leads at the moment"
            )
            raise not_leader(replica.name, why)
        return session

    def leader(self, replica: Replica) -> dict[str, Any]:
        standing = self.standing(replica)
        return {"node": standing.leader, "url": standing.url, "epoch": standing.epoch}

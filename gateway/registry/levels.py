"""Compatibility levels: which one holds for a subject, and how it is changed.

They are entries of the catalog, so the gateway that leads it writes them. They decide what
`/compatibility` answers and what registering says; ALTER TABLE has rules of its own, which no level
loosens.
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.ddl.definer import Definer, Elsewhere
from gateway.forward import Forwarder
from penstock.auth.access import Access
from penstock.catalog import changes
from penstock.catalog.model import EVERY_TABLE, Table
from penstock.catalog.view import Catalog
from penstock.runtime import audit

DEFAULT = "BACKWARD"


class SubjectLevels:
    """Levels of all subjects."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        access: Access,
        definer: Definer,
        forwarder: Forwarder,
    ) -> None:
        self._catalog = catalog
        self._access = access
        self._definer = definer
        self._forwarder = forwarder

    def own(self, table: Table) -> str | None:
        """Return the level that was given to one subject; None: it has what all have."""
        known = self._catalog().compatibility(table.id)
        return known.level if known is not None else None

    def of_all(self) -> str:
        """Return the level of subjects that have none of their own."""
        known = self._catalog().compatibility(EVERY_TABLE)
        return known.level if known is not None else DEFAULT

    def effective(self, table: Table) -> str:
        """Return the level that holds for a subject."""
        return self.own(table) or self.of_all()

    async def put(self, user: str, table: Table | None, level: str | None) -> None:
        """Give a subject a level, or take its own one away.

        Args:
            table: whose subject it is; None: all that have none of their own.
            level: one of LEVELS; None: the subject has what all have, all have DEFAULT.

        Raises:
            AuthError: *user* has no ALTER on the table, or no ADMIN.
        """
        if table is None:
            self._access.require(user, "ADMIN", None)
        else:
            self._access.require(user, "ALTER", table)
        number = table.id if table is not None else EVERY_TABLE
        try:
            await self._definer.run(lambda: apply(self._definer, number, level), user)
        except Elsewhere as elsewhere:
            await self._forwarder.compatibility(elsewhere.address, user, number, level)
        audit.write(
            "compatibility level",
            user=user,
            subject=table.subject if table is not None else "",
            level=level or "",
        )


def apply(definer: Definer, table_id: int, level: str | None) -> None:
    """Write a level into the catalog, or remove it. Runs in the DDL thread."""
    if level is None:
        definer.decide(lambda c, _: changes.clear_compatibility(c, table_id))
    else:
        definer.decide(lambda c, i: changes.set_compatibility(c, i, table_id, level))

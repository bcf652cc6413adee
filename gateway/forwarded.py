"""Definitions that another gateway sent here, because this one leads the catalog."""

from __future__ import annotations

from typing import Any

from gateway.ddl import growth
from gateway.ddl.definer import Definer
from gateway.forward import column_from_json
from gateway.registry import levels
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor


class ForwardedDefinitions:
    """Runs what `forward.Forwarder` sends."""

    def __init__(self, executor: Executor, definer: Definer) -> None:
        self._executor = executor
        self._definer = definer

    async def run(self, body: dict[str, Any], own: dict[tuple[str, int], int]) -> None:
        """Run a statement, widen a table or set a level of the schema registry, for the user that
        *body* names.

        Args:
            own: gets the places of the records that the user's reads have to wait for.

        Raises:
            PenstockError: it is refused.
        """
        user = str(body.get("user", ""))
        if "widen" in body:
            await self._grow_table(body["widen"], user)
            return
        if "compatibility" in body:
            await self._set_level(body["compatibility"], user)
            return
        database = body.get("database")
        context = RequestContext(
            str(database) if database else None,
            str(body.get("timezone") or "UTC"),
            user=user,
            remote="gateway",
            forwarded=True,
            own=own,
        )
        await self._executor.run(str(body["sql"]), context)

    async def _grow_table(self, asked: dict[str, Any], user: str) -> None:
        time, columns, tags = (
            [column_from_json(c) for c in asked[k]] for k in ("time", "columns", "tags")
        )
        definer = self._definer
        await definer.run(
            lambda: growth.grow(definer, asked["database"], asked["table"], time[0], columns, tags),
            user,
        )

    async def _set_level(self, asked: dict[str, Any], user: str) -> None:
        definer = self._definer
        await definer.run(lambda: levels.apply(definer, asked["table"], asked["level"]), user)

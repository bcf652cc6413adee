"""Duties of the catalog's leader: it ends what others have begun, clears up, and keeps Kafka's
rules in step with the grants.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from gateway.ddl.definer import Definer
from gateway.kafka_rights import KafkaRights
from gateway.repartition.coordinator import RepartitionCoordinator
from penstock.errors import BusError
from penstock.runtime import log, vital

_log = log.get("gateway")
_LOOK_S = 1.0
_CLEAR_S = 10.0


class LeaderDuties:
    """Loops for the event loop; the work itself is done in the DDL thread."""

    def __init__(
        self,
        leads: Callable[[], bool],
        definer: Definer,
        repartition: RepartitionCoordinator,
        rights: KafkaRights | None,
    ) -> None:
        """
        Args:
            leads: tells whether this gateway leads the catalog.
            rights: of users in Kafka, if that knows users.
        """
        self._leads = leads
        self._definer = definer
        self._repartition = repartition
        self._rights = rights

    def loops(self) -> dict[str, Coroutine[None, None, None]]:
        """Return the loops to run, by name."""
        loops = {"moves": self._finish_moves(), "topics": self._clear_topics()}
        if self._rights is not None:
            loops["root in Kafka"] = self._know_root(self._rights)
            loops["rights in Kafka"] = self._keep_rights(self._rights)
        return loops

    async def _finish_moves(self) -> None:
        """Go on with changes of partitions that a gateway has begun and not brought to an end."""
        # whatever is run brings them to an end first
        await self._while_leading(
            _LOOK_S,
            lambda: self._repartition.under_way,
            lambda: None,
            "a database is still moving",
        )

    async def _clear_topics(self) -> None:
        """Delete topics of earlier generations once they are empty."""
        await self._while_leading(
            _CLEAR_S,
            lambda: self._repartition.has_former_topics,
            self._repartition.clear,
            "topics of earlier generations stay for now",
        )

    async def _know_root(self, rights: KafkaRights) -> None:
        """Let root log in to Kafka, as soon as that is there."""
        while True:
            try:
                await asyncio.to_thread(rights.know_root)
                return
            except BusError as fault:
                _log.info("root is not known to Kafka yet", reason=str(fault))
                await asyncio.sleep(_LOOK_S)

    async def _keep_rights(self, rights: KafkaRights) -> None:
        """Bring rules in Kafka to the grants: once for each leader, and again where that failed."""
        await self._while_leading(
            _LOOK_S, lambda: rights.behind, rights.keep, "rights in Kafka are behind the grants"
        )

    async def _while_leading(
        self, every: float, wanted: Callable[[], bool], action: Callable[[], None], complaint: str
    ) -> None:
        """Look *every* so many seconds whether *action* is wanted, and run it in the DDL thread;
        one that fails comes again.
        """
        while True:
            await asyncio.sleep(every)
            if self._leads() and wanted():
                try:
                    await self._definer.run(action)
                except vital.FAULTS as error:
                    _log.warning(complaint, reason=f"{type(error).__name__}: {error}")

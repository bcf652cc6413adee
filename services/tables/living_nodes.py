"""Which nodes of stream tables live: by their keys in Redis, and by what others have found out."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from penstock.coordination.presence import Presence, Registry
from services.tables.settings import TablesSettings


class LivingNodes:
    """Raises RemoteError while Redis does not answer."""

    def __init__(
        self, registry: Registry, settings: TablesSettings, nodes: tuple[str, ...]
    ) -> None:
        """
        Args:
            settings: those of this node.
            nodes: that groups of this node have.
        """
        self._registry = registry
        self._settings = settings
        self._nodes = nodes
        #: tells this process from earlier ones of the same node
        self._run = secrets.token_hex(4)
        #: node → its process that was there last, and those processes that are known to be dead
        self._seen: dict[str, str] = {}
        self._dead: set[str] = set()

    def beat(self, tables: tuple[int, ...], leads: Mapping[int, int]) -> None:
        """Say that this node lives.

        Args:
            tables: ids of those it keeps.
            leads: epochs of the groups that it leads, by their ids.
        """
        settings = self._settings
        self._registry.beat(
            Presence(
                settings.alias,
                settings.url,
                self._run,
                tables,
                dict(leads),
                settings.url_for_clients,
            )
        )

    def find(self) -> set[str]:
        """Return the nodes that live."""
        found = self._registry.alive(self._nodes)
        self._seen |= {node: presence.run for node, presence in found.items()}
        return {node for node, presence in found.items() if presence.run not in self._dead}

    def note_death(self, node: str) -> None:
        """Note that the process of *node* that was there last is dead: its last sign of life is in
        Redis for a while yet.
        """
        self._dead.add(self._seen.get(node, ""))

    def leave(self) -> None:
        """Say that this node ends."""
        self._registry.leave(self._settings.alias)

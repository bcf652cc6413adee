"""Subscribing to stream tables: making, finding and ending subscriptions.

The subscription itself is `table_subscription.py`'s.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.client.at_nodes import AtNodes, table_path
from penstock.client.subscription_options import SubscriptionOptions, Target, filter_of
from penstock.client.table_subscription import TableSubscription
from penstock.errors import CatalogError, PenstockError, SchemaError

Handler = Callable[..., Any]


class Subscribing(AtNodes):
    """The part of `Connection.ha` that subscribes."""

    def subscribe(
        self,
        table_name: str,
        handler: Handler | Any,
        action_name: str = "",
        *,
        offset: int = -1,
        server: str | None = None,
        options: SubscriptionOptions | None = None,
    ) -> TableSubscription:
        """Have *handler* called with rows as they come.

        Args:
            table_name: `[database.]name`.
            handler: a function, or a table (anything with `append`).
            action_name: tells this subscription from others of the same table.
            offset: a row; 0 the first, -1 from now on, -2 behind what was processed (with
                `persist_offset`), -3 the earliest there is.
            server: alias or address of any node of the group; by default the leader.
            options: how the handler is called, and what happens when a node is lost.

        Raises:
            PenstockError: the table, the offset or the filter is wrong, or there is such a
                subscription already (`E_SUBSCRIPTION_EXISTS`).
        """
        if handler is None:
            raise SchemaError(
                "a subscription needs a handler", code="E_BODY", hint="a function, or a table"
            )
        wanted = self._resolve(options or SubscriptionOptions(), _is_table(handler))
        if not wanted.reconnect:
            warnings.warn(
                "without reconnect=True the subscription ends with its leader", stacklevel=2
            )
        name = self.qualify(table_name)
        target = Target(name, self.nodes.group_of(name), action_name, offset, server or "")
        call = handler if callable(handler) else handler.append
        key = (name.lower(), action_name)
        with self._lock:
            known = self._subscriptions.get(key)
            if known is not None and not known.wait(0):
                raise CatalogError(
                    f"subscription {known.topic} exists",
                    code="E_SUBSCRIPTION_EXISTS",
                    hint="choose another action_name",
                )
            subscription = TableSubscription(self.nodes, target, call, wanted, self._executors)
            self._subscriptions[key] = subscription.open()
        return subscription

    def _resolve(self, options: SubscriptionOptions, to_table: bool) -> SubscriptionOptions:
        """Return the options that are in force. Raises CatalogError: there is no such group."""
        shared = options.raft_group is not None
        return replace(
            options,
            msg_as_table=options.msg_as_table or to_table,
            reconnect=options.reconnect or shared,
            filter=filter_of(options.filter),
            persist_offset=options.persist_offset or shared,
            raft_group=(
                int(self.nodes.group(options.raft_group)["id"])
                if options.raft_group is not None
                else None
            ),
        )

    def unsubscribe(
        self,
        table_name: str,
        action_name: str = "",
        *,
        server: str | None = None,
        remove_offset: bool = True,
        raft_group: int | str | None = None,
    ) -> None:
        """End a subscription, whoever has made it and whichever node it is at.

        Args:
            table_name: `[database.]name`.
            action_name: as in `subscribe`.
            server: alias or address of any node of the group; by default any.
            remove_offset: forget how far it was.
            raft_group: as in `subscribe`; the subscription ends in all its programs.

        Raises:
            CatalogError: there is none (`E_NO_SUBSCRIPTION`), or its group is another one
                (`E_RAFT_GROUP`).
        """
        name = self.qualify(table_name)
        with self._lock:
            own = self._subscriptions.get((name.lower(), action_name))
        running = own is not None and not own.wait(0)
        urls = [self.nodes.url(server)] if server else self._of_group(name)
        body = {
            "table": name,
            "action": action_name,
            "remove_offset": remove_offset,
            "raft_group": raft_group,
        }
        try:
            self.nodes.ask_any([*urls, *self._of_group(name)], "/v1/unsubscribe", body)
        except PenstockError as error:
            if error.code == "E_RAFT_GROUP":
                own = None  # it goes on
            if error.code != "E_NO_SUBSCRIPTION" or not running:
                raise
        finally:
            if own is not None:
                with self._lock:
                    self._subscriptions.pop((name.lower(), action_name), None)
                own.close()

    def subscription(self, topic: str) -> TableSubscription:
        """Return a running subscription of this connection by its topic. Raises CatalogError."""
        for found in self._subscriptions.values():
            if found.topic == topic:
                return found
        raise CatalogError(f"there is no subscription {topic}", code="E_NO_SUBSCRIPTION")

    def processed_offset(self, topic: str) -> int:
        """Return the last row that a subscription with a kept offset has processed; -1 for none.

        Args:
            topic: of a `TableSubscription`: `group/database.table/action`.
        """
        _, _, rest = topic.partition("/")
        name, _, action = rest.partition("/")
        found = self.nodes.ask_any(
            self._of_group(name), table_path(name, f"/offset?action={action}")
        )
        return int(found["row"]) - 1 if found["row"] > 0 else -1


def _is_table(handler: Any) -> bool:
    """Tell whether *handler* is a table (anything with `append`), or its method."""
    return hasattr(handler, "append") or hasattr(getattr(handler, "__self__", None), "append")

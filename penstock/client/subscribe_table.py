"""Subscribing to stream tables: each function under the reference's name and as a method in
Python's style.

Owns the arguments' names, order and defaults; the subscription itself is `table_subscription.py`'s.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from penstock.client.at_nodes import AtNodes, table_path
from penstock.client.subscription_options import SubscriptionOptions, filter_of
from penstock.client.table_subscription import TableSubscription
from penstock.errors import CatalogError, PenstockError, SchemaError

Handler = Callable[..., Any]


class Subscribing(AtNodes):
    """The part of a connection that subscribes."""

    def subscribe_table(
        self,
        server: str | None,
        table_name: str,
        action_name: str = "",
        offset: int = -1,
        handler: Handler | Any = None,
        msg_as_table: bool = False,
        batch_size: int = 0,
        throttle: float = 1.0,
        hash: int = -1,
        reconnect: bool = False,
        filter: Any = None,
        persist_offset: bool = False,
        time_trigger: bool = False,
        handler_need_msg_id: bool = False,
        raft_group: int | str | None = None,
    ) -> TableSubscription:
        """Have *handler* called with rows as they come.

        Args:
            server: alias or address of any node of the group; by default the leader.
            table_name: `[database.]name`.
            action_name: tells this subscription from others of the same table.
            offset: a row; 0 the first, -1 from now on, -2 behind what was processed (with
                *persist_offset*), -3 the earliest there is.
            handler: a function, or a table (anything with `append`).
            msg_as_table: messages are tables (`Message`), else lists of columns.
            batch_size: call when this many rows have come, or more; 0: with every block that comes.
            throttle: seconds after which fewer rows than *batch_size* are handed over.
            hash: subscriptions of the same hash (modulo threads) are called by one thread; -1: by
                its own.
            reconnect: go to the new leader when the connection or the leader is lost. A
                subscription without it ends there.
            filter: a condition in SQL, a list of values, a pair of bounds, or `("hash", buckets,
                index)`.
            persist_offset: the group keeps how far rows are processed.
            time_trigger: call every *throttle* seconds, rows or not.
            handler_need_msg_id: the handler gets the id of the last row as well.
            raft_group: programs that subscribe with the same group, table and action stand in for
                each other: one of them gets the rows, and when it is gone the next one, from the
                row behind what was processed. Implies *reconnect* and *persist_offset*.

        Raises:
            PenstockError: the table, the offset or the filter is wrong, or there is such a
                subscription already (`E_SUBSCRIPTION_EXISTS`).
        """
        if handler is None:
            raise SchemaError(
                "a subscription needs a handler", code="E_BODY", hint="a function, or a table"
            )
        call = handler if callable(handler) else handler.append
        shared = int(self._nodes.group(raft_group)["id"]) if raft_group is not None else None
        reconnect = reconnect or shared is not None
        persist_offset = persist_offset or shared is not None
        if not reconnect:
            warnings.warn(
                "without reconnect=True the subscription ends with its leader", stacklevel=2
            )
        name = self.table_name(table_name)
        group = self._nodes.group_of(name)
        options = SubscriptionOptions(
            msg_as_table or _is_table(handler),
            batch_size,
            throttle,
            hash,
            reconnect,
            filter_of(filter),
            persist_offset,
            time_trigger,
            handler_need_msg_id,
            shared,
        )
        key = (name.lower(), action_name)
        with self._stream_lock:
            known = self._subscriptions.get(key)
            if known is not None and not known.wait(0):
                hint = "choose another actionName"
                raise CatalogError(
                    f"subscription {known.topic} exists", code="E_SUBSCRIPTION_EXISTS", hint=hint
                )
            subscription = TableSubscription(
                self._nodes,
                name,
                group,
                action_name,
                offset,
                call,
                options,
                self._executors,
                node=server or "",
            )
            self._subscriptions[key] = subscription.open()
        return subscription

    def subscribeTable(  # noqa: N802
        self,
        server: str | None,
        tableName: str,
        actionName: str = "",
        offset: int = -1,
        handler: Handler | Any = None,  # noqa: N803
        msgAsTable: bool = False,
        batchSize: int = 0,
        throttle: float = 1.0,
        hash: int = -1,
        reconnect: bool = False,  # noqa: N803
        filter: Any = None,
        persistOffset: bool = False,
        timeTrigger: bool = False,
        handlerNeedMsgId: bool = False,  # noqa: N803
        raftGroup: int | str | None = None,  # noqa: N803
    ) -> str:
        """`subscribe_table` under the name and with the arguments of the reference; the
        subscription's topic.
        """
        return self.subscribe_table(
            server,
            tableName,
            actionName,
            offset,
            handler,
            msgAsTable,
            batchSize,
            throttle,
            hash,
            reconnect,
            filter,
            persistOffset,
            timeTrigger,
            handlerNeedMsgId,
            raftGroup,
        ).topic

    def unsubscribe_table(
        self,
        server: str | None,
        table_name: str,
        action_name: str = "",
        remove_offset: bool = True,
        raft_group: int | str | None = None,
    ) -> None:
        """End a subscription, whoever has made it and whichever node it is at.

        Args:
            server: alias or address of any node of the group; by default any.
            table_name: `[database.]name`.
            action_name: as in `subscribe_table`.
            remove_offset: forget how far it was.
            raft_group: as in `subscribe_table`; the subscription ends in all its programs.

        Raises:
            CatalogError: there is none (`E_NO_SUBSCRIPTION`), or its raftGroup is another one
                (`E_RAFT_GROUP`).
        """
        name = self.table_name(table_name)
        with self._stream_lock:
            own = self._subscriptions.get((name.lower(), action_name))
        running = own is not None and not own.wait(0)
        urls = [self._nodes.url(server)] if server else self._of_group(name)
        body = {
            "table": name,
            "action": action_name,
            "remove_offset": remove_offset,
            "raft_group": raft_group,
        }
        try:
            self._nodes.ask_any([*urls, *self._of_group(name)], "/v1/unsubscribe", body)
        except PenstockError as error:
            if error.code == "E_RAFT_GROUP":
                own = None  # it goes on
            if error.code != "E_NO_SUBSCRIPTION" or not running:
                raise
        finally:
            if own is not None:
                with self._stream_lock:
                    self._subscriptions.pop((name.lower(), action_name), None)
                own.close()

    def unsubscribeTable(  # noqa: N802
        self,
        server: str | None,
        tableName: str,
        actionName: str = "",
        removeOffset: bool = True,  # noqa: N803
        raftGroup: int | str | None = None,  # noqa: N803
    ) -> None:
        """`unsubscribe_table` under the name of the reference."""
        self.unsubscribe_table(server, tableName, actionName, removeOffset, raftGroup)

    def subscription(self, topic: str) -> TableSubscription:
        """A running subscription of this connection by its topic. Raises CatalogError."""
        for found in self._subscriptions.values():
            if found.topic == topic:
                return found
        raise CatalogError(f"there is no subscription {topic}", code="E_NO_SUBSCRIPTION")

    def get_topic_processed_offset(self, topic: str) -> int:
        """The last row that a subscription with a kept offset has processed; -1 for none.

        Args:
            topic: as `subscribeTable` gave it: `group/database.table/action`.
        """
        _, _, rest = topic.partition("/")
        name, _, action = rest.partition("/")
        found = self._nodes.ask_any(
            self._of_group(name), table_path(name, f"/offset?action={action}")
        )
        return int(found["row"]) - 1 if found["row"] > 0 else -1

    getTopicProcessedOffset = get_topic_processed_offset  # noqa: N815


def _is_table(handler: Any) -> bool:
    """Tell whether *handler* is a table (anything with `append`), or its method."""
    return hasattr(handler, "append") or hasattr(getattr(handler, "__self__", None), "append")

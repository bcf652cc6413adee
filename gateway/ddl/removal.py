"""DROP TABLE and DROP DATABASE, and DELETE: rows go by a record in the log, at their place."""

from __future__ import annotations

import dataclasses
import secrets

import redis

from gateway.children import text
from gateway.ddl.child_tables import ChildTables
from gateway.ddl.definer import Definer
from gateway.layout import RowLayout
from penstock import names
from penstock.catalog import changes
from penstock.catalog.model import Table
from penstock.records import DROPPED, ControlRecord
from penstock.rows.partition import partition
from penstock.runtime import log

_log = log.get("gateway.ddl")
#: ticks that no time lies beyond
#: ticks that no time lies beyond
_ALL_TIME = (-(2**63), 2**63 - 1)


class Removal:
    """Runs in the DDL thread, except `delete_rows`."""

    def __init__(self, definer: Definer, child_tables: ChildTables, client: redis.Redis) -> None:
        self._definer = definer
        self._child_tables = child_tables
        self._redis = client

    def drop_table(self, database: str, name: str, if_exists: bool) -> None:
        """DROP TABLE or STABLE. A child's rows go too, at their place in the log."""
        table = self._definer.catalog.table(database, name)
        if table is None:
            child = self._child_tables.find(database, name)
            if child is not None:
                self._drop_child(database, child[0], child[1])
                return
        self._definer.decide(
            lambda c, _: changes.drop_table(c, database, name, if_exists=if_exists)
        )
        if table is not None:
            self._forget(table)
            self._definer.topics.empty_log(table)
            self._definer.topics.remember_dropped([table.topic])

    def _drop_child(self, database: str, layout: RowLayout, name: str) -> None:
        """Drop its rows first, its name last: a DROP that fails half-way can be sent again. The
        store names in Redis what it sees in rows, so the name goes when the store has taken the
        delete, not before.
        """
        change = changes.drop_child(
            self._definer.catalog, self._definer.new_id, database, name, layout.table
        )
        drop = secrets.token_hex(8)
        where = self.delete_rows(layout, (name,), *_ALL_TIME, body=DROPPED, echo=drop)
        if self._definer.watch.runs("store"):
            wanted = {f"store:{topic}:{p}" for topic, p in where}
            self._definer.watch.until(
                lambda: wanted <= {text(k) for k in self._redis.hkeys(names.barrier(drop))},
                f"the store has not taken the drop of {name} yet",
                "send it again; `penstock status` shows who lags",
            )
        self._child_tables.forget_child(layout, name)
        self._definer.commit(change)

    def drop_database(self, name: str, if_exists: bool) -> None:
        """DROP DATABASE: its streams are told to stop; its topics stay, so that offsets in them
        stay what they were.
        """
        tables = self._definer.catalog.tables(name)
        topics_before = self._definer.catalog.former_topics() | self._definer.catalog.topics()
        streams = {
            s.id: self._definer.catalog.source_topics(s.plan)
            for s in self._definer.catalog.streams(name)
        }
        self._definer.decide(lambda c, _: changes.drop_database(c, name, if_exists=if_exists))
        for stream_id, topics in streams.items():
            for topic, partitions in topics.items():
                self._definer.send(
                    topic, range(partitions), ControlRecord("stream_off", stream=stream_id)
                )
        for table in tables:
            self._forget(table)
            self._definer.topics.empty_log(table)
        self._definer.topics.remember_dropped(topics_before)

    def delete_rows(
        self,
        layout: RowLayout,
        tables: tuple[str, ...] | None,
        low: int,
        high: int,
        body: str = "",
        echo: str = "",
    ) -> dict[tuple[str, int], int]:
        """Write a delete to the partitions that may hold such rows; return where it was written.

        Args:
            echo: as the id of a barrier, under which the store says that it has taken it.
        """
        table = self._definer.catalog.table_by_id(layout.table_id)
        if table is not None:  # its partitions may have changed since somebody looked
            layout = dataclasses.replace(layout, topic=table.topic, partitions=table.partitions)
        where = (
            range(layout.partitions)
            if tables is None
            else sorted({partition(t, layout.partitions) for t in tables})
        )
        control = ControlRecord(
            "delete", id=echo, table=layout.table_id, tables=tables, low=low, high=high, body=body
        )
        return {
            (layout.topic, p): o
            for p, o in self._definer.send(layout.topic, where, control).items()
        }

    def _forget(self, table: Table) -> None:
        self._child_tables.forget(table)
        try:
            self._redis.unlink(names.children(table.id), names.last_row(table.database, table.name))
        except redis.RedisError as down:
            _log.warning(
                "what Redis held of a dropped table stays", table=table.name, reason=str(down)
            )

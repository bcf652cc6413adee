"""`Connection.ha`: stream tables of raft groups.

Making, dropping and asking; subscribing and databases have files of their own. What they do is SQL
to the gateway (making and dropping), a producer (`append`), or a question to the nodes.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.client.appender import Appender
from penstock.client.at_nodes import DEFAULT_DATABASE, table_path
from penstock.client.databases import Databases
from penstock.client.result import Result
from penstock.client.stream_definitions import StreamDefinition
from penstock.client.stream_table_options import StreamTableOptions
from penstock.client.stream_table_sql import check_arguments, options_sql, quote_text, spell_path
from penstock.client.subscribe_table import Subscribing
from penstock.client.table_handles import StreamTable, TableDefinition
from penstock.client.wire import ROW_ID, from_stream
from penstock.errors import CatalogError, PenstockError, RemoteError, SchemaError


class StreamTables(Subscribing, Databases):
    """All about stream tables that a connection can do."""

    # ---------------------------------------------------------------- making and dropping

    def create(
        self,
        raft_group: int | str,
        table: TableDefinition,
        table_name: str,
        cache_limit: int,
        options: StreamTableOptions | None = None,
    ) -> StreamTable:
        """Make a highly available stream table and return it when every node has it and one leads
        it.

        Args:
            raft_group: the group that keeps it: an id greater than 1, or an alias.
            table: an empty table made by `penstock.table`.
            table_name: `[database.]name`.
            cache_limit: most rows in memory on each node; more than 100,000 are lowered to that,
                which the metadata show.
            options: its key, how long rows are kept, and more.

        Raises:
            PenstockError: whatever is wrong, naming the argument.
        """
        check_arguments(table, raft_group, cache_limit)
        return self._make(
            raft_group, table, table_name, cache_limit, options_sql(options or StreamTableOptions())
        )

    def share(
        self,
        table: StreamDefinition,
        table_name: str,
        *,
        raft_group: int | str | None = None,
        cache_limit: int = 100_000,
        options: StreamTableOptions | None = None,
    ) -> StreamTable:
        """Make a stream table that was only defined, for everybody to see, and append its first
        rows.

        Args:
            table: from `penstock.stream_table`, `keyed_stream_table`, `latest_keyed_stream_table`
                or `changelog_stream_table`.
            table_name: `[database.]name`.
            raft_group: the group that keeps it; by default the first one there is.
            cache_limit: most rows in memory on each node.
            options: when a row counts as written, what stays in memory, and more.

        Raises:
            PenstockError: whatever is wrong.
        """
        if not isinstance(table, StreamDefinition):
            raise SchemaError(
                f"only a stream table can be shared, not {type(table).__name__}",
                code="E_BODY",
                hint="penstock.stream_table, keyed_stream_table, latest_keyed_stream_table and"
                " changelog_stream_table make some",
            )
        if raft_group is None:
            groups = self.nodes.groups()
            # without any, the gateway says what is missing
            raft_group = groups[0]["id"] if groups else 2
        inside = [*table.options_sql(), *options_sql(options or StreamTableOptions())]
        stream_table = self._make(raft_group, table, table_name, cache_limit, inside)
        if table.values:
            stream_table.append(table.values)
        return stream_table

    def _make(
        self,
        raft_group: int | str,
        table: TableDefinition,
        table_name: str,
        cache_limit: int,
        options: Sequence[str],
    ) -> StreamTable:
        name = self.qualify(table_name)
        if "." not in table_name and self._connection.database is None:
            self._connection.execute(f"CREATE DATABASE IF NOT EXISTS {DEFAULT_DATABASE}")
        group = raft_group if isinstance(raft_group, int) else quote_text(raft_group)
        inside = ", ".join([f"raft_group={group}", f"cache_limit={cache_limit}", *options])
        self._connection.execute(
            f"CREATE STREAM TABLE {spell_path(name)} ({table.columns_sql()}) WITH ({inside})"
        )
        self.nodes.refresh()
        return StreamTable(self, name)

    def table(self, name: str) -> StreamTable:
        """Return a stream table that exists. Raises CatalogError."""
        qualified = self.qualify(name)
        self.nodes.group_of(qualified)
        return StreamTable(self, qualified)

    def drop(self, name: str, force: bool = False) -> None:
        """Drop a stream table on all its nodes. Raises CatalogError: there are subscriptions
        (`E_IN_USE`); *force* does not help against that.
        """
        if force:
            raise CatalogError(
                "a highly available stream table is not dropped by force",
                code="E_IN_USE",
                hint="unsubscribe first, then drop",
            )
        self._connection.execute(f"DROP TABLE {spell_path(self.qualify(name))}")
        self.nodes.refresh()

    # ---------------------------------------------------------------- how things are

    def leader(self, group_id: int | str) -> str:
        """Return the alias of the node that leads. Raises RemoteError: nobody does at the moment
        (`E_NO_LEADER`).
        """
        group = self.nodes.group(group_id)
        leader = self.nodes.leader(group["id"], of_all=True)
        if leader is None:
            raise RemoteError(
                f"group {group['id']} has no leader at the moment",
                code="E_NO_LEADER",
                hint="try again in a second",
            )
        return leader.node

    def groups(self, node: str | None = None) -> Result:
        """List every group, or those of *node*: columns `id` and `sites` (`host:port:alias`,
        separated by commas).
        """
        self.nodes.refresh()
        rows = []
        for group in self.nodes.groups():
            nodes = [*group["members"], *group["learners"]]
            if node is None or node in nodes:
                rows.append(
                    {
                        "id": group["id"],
                        "sites": ",".join(f"{self._site(n)}:{n}" for n in group["members"]),
                    }
                )
        return Result(
            pa.Table.from_pylist(
                rows, schema=pa.schema([("id", pa.int64()), ("sites", pa.string())])
            )
        )

    def _site(self, node: str) -> str:
        try:
            return self.nodes.url(node).partition("://")[2]
        except RemoteError:
            return ":"

    def stat(self) -> dict[str, list[dict[str, Any]]]:
        """Return what nodes publish and keep (`pubConns`, `pubTables`, `persistWorkers`), and this
        side of it (`subConns`, `subWorkers`).
        """
        found: dict[str, list[dict[str, Any]]] = {
            "pubConns": [],
            "pubTables": [],
            "persistWorkers": [],
            "nodesAway": [],
        }
        self.nodes.refresh()
        for name in dict.fromkeys(
            n for g in self.nodes.groups() for n in (*g["members"], *g["learners"])
        ):
            try:
                answer = self.nodes.ask(self.nodes.url(name), "/v1/stat", seconds=2.0)
            except PenstockError as away:
                found["nodesAway"].append({"node": name, "why": away.message})
                continue
            for part in ("pubConns", "pubTables", "persistWorkers"):
                found[part] += [{"node": name, **line} for line in answer[part]]
        workers = [s.to_dict() for s in list(self._subscriptions.values())]
        connections = [
            {"publisher": w["node"], "topic": w["topic"]} for w in workers if w["running"]
        ]
        return {**found, "subConns": connections, "subWorkers": workers, "udpPubTables": []}

    def meta(self, table: str | StreamTable, *, node: str | None = None) -> dict[str, Any]:
        """Return sizes and positions of a stream table on its leader, or on *node*."""
        name = table.name if isinstance(table, StreamTable) else self.qualify(table)
        meta: dict[str, Any] = self._describe(name, node)["meta"]
        return meta

    def describe(self, name: str) -> dict[str, Any]:
        """Return columns, group and leader of a stream table; `schema` is Arrow's, without
        row_id.
        """
        found = self._describe(self.qualify(name), None)
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["schema"])))
        return {**found, "schema": pa.schema([f for f in schema if f.name != ROW_ID])}

    def memory_rows(self, name: str, *, node: str | None = None) -> Result:
        """Return the rows of a stream table in memory, on its leader or on *node*."""
        name = self.qualify(name)
        urls = [self.nodes.url(node)] if node else self._of_group(name)
        return Result(from_stream(self.nodes.ask_any(urls, table_path(name, "/rows"))))

    def appender(self, name: str, *, window: int = 256, patience: float = 60.0) -> Appender:
        """Return a producer of its own for a stream table: rows in order, each once, many under
        way.
        """
        qualified = self.qualify(name)
        return Appender(
            self.nodes,
            qualified,
            self.nodes.group_of(qualified),
            window=window,
            patience=patience,
        )

    def _describe(self, name: str, node: str | None) -> dict[str, Any]:
        urls = [self.nodes.url(node)] if node else self._of_group(name)
        found: dict[str, Any] = self.nodes.ask_any(urls, table_path(name))
        return found

"""Tables as values of a program: what `table`, `client.ha.create` and `create_partitioned_table`
give back, and rows put into their form.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.client.appender import Appender
from penstock.client.result import Result
from penstock.client.values import column, columns_of, without_nan
from penstock.client.wire import Rows, is_objects, to_table
from penstock.errors import SchemaError
from penstock.notebook.markup import line, names_line

if TYPE_CHECKING:
    from penstock.client.at_nodes import Statements
    from penstock.client.stream_tables import StreamTables

#: types of the reference's scripts by their names here
_TYPES = {
    "SYMBOL": "VARCHAR(64)",
    "STRING": "VARCHAR(256)",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "CHAR": "TINYINT",
    "NANOTIMESTAMP": "TIMESTAMP",
    "DATETIME": "TIMESTAMP",
    "DATE": "TIMESTAMP",
    "VARCHAR": "VARCHAR(256)",
    "TIME": "INT",
    "SECOND": "INT",
    "MINUTE": "INT",
    "NANOTIME": "BIGINT",
    "NCHAR": "NCHAR(64)",
    "VARBINARY": "VARBINARY(256)",
}
#: second column of a table made by `create_partitioned_table`, so that rows of one time are
#: different rows
SINK_KEY = "row_id"
#: first column of a stream table that was defined without a time: when the row came
ARRIVED = "arrived"
#: last column of a changelog: N or U
CHANGELOG_TYPE = "changelog_type"
_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def quote_name(name: str) -> str:
    return name if _SIMPLE.match(name) else "`" + name.replace("`", "``") + "`"


class TableDefinition:
    """Names and types of columns, and perhaps rows: what the reference's `table` gives."""

    def __init__(
        self, names: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]] = ()
    ) -> None:
        """
        Args:
            names: of the columns; the first is the time.
            types: by their names here (`TIMESTAMP`, `VARCHAR(16)`, …) or in the reference
                (`SYMBOL`, `LONG`, …).
            rows: rows that it holds already; a stream table is made from an empty one.

        Raises:
            SchemaError: names and types do not fit each other.
        """
        if len(names) != len(types) or not names:
            raise SchemaError(
                f"{len(names)} names for {len(types)} types",
                code="E_BODY",
                hint="table(names, types): as many of each",
            )
        self.names = tuple(names)
        self.types = tuple(_TYPES.get(t.upper(), t.upper()) for t in types)
        self.rows = tuple(rows)

    def columns_sql(self) -> str:
        """For CREATE … (here)."""
        return ", ".join(
            f"{quote_name(n)} {t}" for n, t in zip(self.names, self.types, strict=True)
        )

    def __len__(self) -> int:
        return len(self.rows)


def table(
    names: Sequence[str] | Mapping[str, Sequence[Any]], types: Sequence[str] | None = None
) -> TableDefinition:
    """Return an empty table for `client.ha.create`: `table(["ts", "sym"], ["TIMESTAMP",
    "SYMBOL"])`. Raises SchemaError.
    """
    if isinstance(names, Mapping):
        raise SchemaError(
            "types are missing", code="E_BODY", hint='table(["ts", "sym"], ["TIMESTAMP", "SYMBOL"])'
        )
    return TableDefinition(names, types or ())


class StreamTable:
    """A stream table of a raft group. Appends go to the leader, in order and once each."""

    def __init__(self, client: StreamTables, name: str) -> None:
        """
        Args:
            name: `database.table`.
        """
        self._client = client
        self.name = name
        self._known: dict[str, Any] | None = None
        self._appender: Appender | None = None
        self._lock = threading.Lock()
        #: appends that nobody has waited for
        self._unseen: deque[Future[int]] = deque()

    def append(self, rows: Rows | Result | Mapping[str, Sequence[Any]]) -> int:
        """Append rows and return their number when they are in the log for good (those with a known
        key count, but are left out).

        A table made with `async_write` does not wait: rows that have no answer yet are lost when
        this program dies, and what went wrong with them is raised by a later `append`, or by
        `flush`.

        Raises:
            SchemaError: a row does not fit.
            RemoteError: `E_NO_QUORUM`: fewer nodes than a majority are there.
        """
        data = arrow_rows(rows, self.schema)
        if not self._description["meta"]["asynWrite"]:
            return self.appender.append(data)
        self._look_back()
        self._unseen.append(self.appender.submit(data))
        return int(data.num_rows)

    def flush(self) -> None:
        """Wait until all rows are in the log. Raises PenstockError: some are not."""
        self.appender.flush()
        self._look_back()

    def _look_back(self) -> None:
        while self._unseen and self._unseen[0].done():
            self._unseen.popleft().result()

    def submit(self, rows: Rows | Result | Mapping[str, Sequence[Any]]) -> Future[int]:
        """The same without waiting: many writes under way keep their order."""
        return self.appender.submit(arrow_rows(rows, self.schema))

    def __repr__(self) -> str:
        # asks nobody: the columns are there once the table has been used
        known = self._known
        columns = f": columns {names_line(known['schema'].names)}" if known is not None else ""
        return f"<stream table {line(self.name)}{columns}>"

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them, without row_id."""
        found: pa.Schema = self._description["schema"]
        return found

    @property
    def _description(self) -> dict[str, Any]:
        if self._known is None:
            self._known = self._client.describe(self.name)
        return self._known

    @property
    def appender(self) -> Appender:
        with self._lock:
            if self._appender is None:
                self._appender = self._client.appender(self.name)
            return self._appender

    def rows(self, *, node: str | None = None) -> Result:
        """The rows in memory on the leader, or on *node*; `row_id` is their index."""
        return self._client.memory_rows(self.name, node=node)

    def select(self, *, node: str | None = None) -> Result:
        """What `select * from` it shows in the reference: the rows in memory with the columns that
        it was defined with. Of a changelog only the newest row of each key.
        """
        meta = self._description["meta"]
        rows = self.rows(node=node).table
        own = [
            n
            for n in rows.column_names
            if n != SINK_KEY
            and n not in (meta["statusColumn"], ARRIVED if _has_arrival_time(meta) else None)
        ]
        if meta["keyRule"] == "changelog":
            keys = [rows.column(name).to_pylist() for name in meta["keyColumn"]]
            newest = {key: i for i, key in enumerate(zip(*keys, strict=True))}
            rows = rows.take(sorted(newest.values()))
        return Result(rows.select(own))

    def changelog(self, *, node: str | None = None) -> Result:
        """All rows in memory of a changelog, with `changelog_type` in front. Raises SchemaError: it
        is none.
        """
        meta = self._description["meta"]
        rows = self.rows(node=node).table
        if meta["statusColumn"] is None:
            raise SchemaError(
                f"{self.name} is no changelog",
                code="E_BODY",
                hint="penstock.changelog_stream_table makes one",
            )
        hidden = (SINK_KEY, meta["statusColumn"], ARRIVED if _has_arrival_time(meta) else None)
        return Result(
            rows.select([meta["statusColumn"], *(n for n in rows.column_names if n not in hidden)])
        )

    def meta(self, *, node: str | None = None) -> dict[str, Any]:
        """Return sizes and positions."""
        return self._client.meta(self.name, node=node)

    def close(self) -> None:
        """Wait for answers and leave; the table stays."""
        with self._lock:
            appender = self._appender
            self._appender = None
        if appender is not None:
            appender.close()

    def __len__(self) -> int:
        return int(self.meta()["totalSize"])


def _has_arrival_time(meta: Mapping[str, Any]) -> bool:
    """Tell whether the first column is one that nobody defined."""
    return bool(meta["timestampColumn"] == ARRIVED)


class PartitionedTable:
    """A table made by `create_partitioned_table`: a place for rows to stay. Rows from a
    subscription keep their index as part of the key, so the same ones delivered again change
    nothing.
    """

    def __init__(self, client: Statements, name: str, columns: Sequence[str]) -> None:
        """
        Args:
            name: `database.table`.
            columns: without the key.
        """
        self._client = client
        self.name = name
        self.columns = tuple(columns)

    def append(
        self, rows: Rows | Result | Sequence[Sequence[Any]] | Mapping[str, Sequence[Any]]
    ) -> int:
        """Write rows (also as a handler: a message, or a list of columns) and return their number.
        Raises PenstockError.
        """
        ids: Any = getattr(rows, "row_ids", None)
        if isinstance(rows, list) and rows and isinstance(rows[0], list):
            data = pa.table(dict(zip(self.columns, rows, strict=True)))
        elif isinstance(rows, Result):
            data = rows.table
        else:
            data = arrow_rows(rows, None)
        if ids is None:
            ids = pa.array(
                np.random.default_rng(secrets.randbits(64)).integers(0, 2**63 - 1, data.num_rows)
            )
        return self._client.write(self.name, data.append_column(SINK_KEY, ids))


def arrow_rows(rows: Any, schema: pa.Schema | None) -> pa.Table:
    """Rows in any accepted form as Arrow; objects and lists of columns in the types of *schema*.

    Raises:
        SchemaError: a value does not fit.
    """
    if isinstance(rows, Result):
        return without_nan(rows.table)
    if isinstance(rows, Mapping):
        columns: Mapping[str, Any] = {str(k): v for k, v in rows.items()}
    elif is_objects(rows):
        columns = columns_of(rows)
    else:
        return to_table(rows)
    types = {f.name.lower(): f.type for f in schema} if schema is not None else {}
    made = {name: column(name, values, types.get(name.lower())) for name, values in columns.items()}
    sizes = {name: len(values) for name, values in made.items()}
    if len(set(sizes.values())) > 1:
        raise SchemaError(
            "the columns are not of one length", code="E_ROW", detail=str(sizes)[:200]
        )
    return without_nan(pa.table(made))

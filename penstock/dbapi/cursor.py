"""Runs statements and hands out their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pyarrow as pa

from penstock.dbapi.errors import InterfaceError, standard_errors
from penstock.dbapi.kinds import code_of
from penstock.dbapi.many import fold
from penstock.rows.parameters import Parameters

if TYPE_CHECKING:
    from penstock.client.result import Result
    from penstock.dbapi.connection import Connection

#: name, type code, and five things that Penstock does not tell
ColumnDescription: TypeAlias = tuple[str, str, None, None, None, None, None]
_AFFECTED = ["affected_rows"]
#: rows that are made Python's at a time
_ROWS_AT_A_TIME = 4_096


class Cursor:
    """Use it in a `with`, or `close` it; iterating gives the rows that are left."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: rows that `fetchmany` returns by default
        self.arraysize = 1
        #: rows of a result, or those that a statement wrote; -1 before the first one
        self.rowcount = -1
        self.lastrowid = None
        self._table: pa.Table | None = None
        self._rows: Iterator[tuple[Any, ...]] = iter(())
        self._closed = False

    @property
    def description(self) -> list[ColumnDescription] | None:
        """Columns of the result; None for a statement that has none."""
        if self._table is None:
            return None
        return [
            (field.name, code_of(field.type), None, None, None, None, None)
            for field in self._table.schema
        ]

    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        """Run a statement.

        Args:
            operation: one statement; several only without parameters.
            parameters: a sequence for `?`, a mapping for `:name`.

        Raises:
            Error: the standard's kind of what the gateway said.
        """
        self._check()
        self._table = None
        with standard_errors():
            found = self.connection.penstock.query(operation, parameters or None)
        self._take(found)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Self:
        """Run a statement for each of some rows of parameters. An INSERT that ends with a row of
        `?` is sent for many of them at a time.
        """
        self._check()
        rows = list(seq_of_parameters)
        positional = [row for row in rows if not isinstance(row, Mapping)]
        statements = fold(operation, positional) if len(positional) == len(rows) else None
        if statements is None:
            statements = ((operation, row) for row in rows)
        written = 0
        for sql, values in statements:
            self.execute(sql, values)
            written += max(self.rowcount, 0)
        self.rowcount = written
        return self

    def _take(self, found: Result) -> None:
        table = found.table
        if table.column_names == _AFFECTED:
            self.rowcount = int(table.column(0)[0].as_py())
            self._rows = iter(())
            return
        self._table = table
        self.rowcount = table.num_rows
        self._rows = _tuples(table)

    # ---------------------------------------------------------------- rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None behind the last one."""
        self._check_result()
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return up to *size* rows, by default `arraysize`."""
        self._check_result()
        wanted = self.arraysize if size is None else size
        return [row for _, row in zip(range(wanted), self._rows, strict=False)]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left."""
        self._check_result()
        return list(self._rows)

    def fetch_arrow_table(self) -> pa.Table:
        """Return the whole result as an Arrow table, as ADBC's cursors do."""
        self._check_result()
        return self._table

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self._check_result()
        return self._rows

    # ---------------------------------------------------------------- the rest

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing: values have no sizes to be told."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing: long values come whole."""

    def close(self) -> None:
        self._closed = True
        self._table = None
        self._rows = iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self) -> None:
        if self._closed or self.connection.closed:
            raise InterfaceError("the cursor is closed")

    def _check_result(self) -> None:
        self._check()
        if self._table is None:
            raise InterfaceError("there is no result to fetch: execute a query first")


def _tuples(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield rows as tuples of Python's values, some at a time."""
    for batch in table.to_batches(max_chunksize=_ROWS_AT_A_TIME):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

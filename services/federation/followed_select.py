"""The SELECT of a subscription over the link, compiled for the table as it is now."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from penstock.catalog.model import Table
from penstock.errors import CatalogError
from penstock.link.description import Description
from penstock.link.selection import Selection, compile_selection
from penstock.sql.plan import Column
from penstock.types import ColumnType

_PLACE = (Column("_offset", ColumnType("BIGINT")), Column("_row", ColumnType("BIGINT")))


class FollowedSelect:
    """Compiled anew when the table's definition or the number of its partitions changes."""

    source: Description
    selection: Selection
    #: columns of a message
    columns: tuple[Column, ...]

    def __init__(
        self,
        sql: str,
        find: Callable[[], Table | None],
        child: str | None,
        timezone: str,
        now: int,
        *,
        partitions: int,
        positions: bool,
    ) -> None:
        """
        Args:
            find: gives the present definition of the table, None once it was dropped.
            now: what that means in the SELECT, in nanoseconds since 1970.
            partitions: of the topic that is read, which may be about to end.
            positions: messages say where their rows are in the log.

        Raises:
            SqlError: the SELECT does not fit the table.
        """
        self._sql = sql
        self._find = find
        self.child = child
        self._timezone = timezone
        self._now = now
        self.partitions = partitions
        self._positions = positions
        self._versions: tuple[int, ...] = ()
        self.refresh()

    def table(self) -> Table:
        """Return the table as it is now. Raises CatalogError once it was dropped."""
        table = self._find()
        if table is None:
            raise CatalogError("the table was dropped", code="E_NO_TABLE")
        return table

    def refresh(self) -> bool:
        """Follow ALTER TABLE; return True if the definition is another. Raises CatalogError when
        the table is gone, SqlError when a column is.
        """
        table = self.table()
        versions = (*table.schema_ids, self.partitions)
        if versions == self._versions:
            return False
        self.source = dataclasses.replace(
            Description.of(table, self.child), partitions=self.partitions
        )
        self.selection = compile_selection(self._sql, self.source, self._timezone, self._now)
        changed = bool(self._versions)
        self._versions = versions
        system = (
            Column("_op", ColumnType("TINYINT")),
            Column("tbname", ColumnType("VARCHAR", 192)),
            Column("_time", table.columns[0].type),
        )
        self.columns = (*system, *(_PLACE if self._positions else ()), *self.selection.outputs)
        return changed

"""The shape of a table's rows, to who writes them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from penstock import names
from penstock.catalog.stored import StoredNames
from penstock.sql.plan import Column

#: names the child table of a row
TBNAME = "tbname"
#: holds the operation that a row is
OP = "_op"


@dataclass(frozen=True)
class RowLayout:
    """The shape of one table's rows. `columns[0]` is the time column; `max_ahead` in ticks."""

    table_id: int
    schema_id: int
    database: str
    table: str
    topic: str
    partitions: int
    columns: tuple[Column, ...]
    tags: tuple[Column, ...]
    precision: str
    max_ahead: int
    plain: bool
    key_column: str | None = None
    #: its rows are other tables' rows: nothing can be written
    virtual: bool = False
    #: a stream table of a raft group: its leader writes the rows, and numbers them
    replicated: bool = False
    #: a topic of another Kafka: its messages become rows
    foreign: bool = False
    #: names of columns and tags in what Redis holds of rows
    stored: StoredNames = dataclasses.field(default_factory=dict, hash=False)

    @property
    def time(self) -> str:
        return self.columns[0].name

    @property
    def fields(self) -> tuple[Column, ...]:
        return self.columns + self.tags

    @property
    def values(self) -> tuple[Column, ...]:
        """Return columns that are no part of the key."""
        return tuple(c for c in self.columns[1:] if c.name != self.key_column)

    @property
    def stamped(self) -> bool:
        """Tell a stream without a time column: its first two columns, time and number, come by
        themselves.
        """
        return self.time == names.EVENT_TIME and self.key_column == names.EVENT_NUMBER

    def find(self, name: str) -> Column | None:
        """Return the column or tag called *name*, whatever its case."""
        low = name.lower()
        return next((c for c in self.fields if c.name.lower() == low), None)

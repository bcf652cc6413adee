"""What stands in FROM, and where a name is looked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.sql.functions.base import BIGINT, TIMESTAMP
from penstock.sql.source_names import TBNAME, TIME_ALIASES
from penstock.types import ColumnType

#: columns that every table has and `*` leaves out
_VIRTUAL = {"tbname": TBNAME, "_tp_sn": BIGINT, "_tp_shard": ColumnType("INT")}


@dataclass(frozen=True)
class Output:
    """A column that a relation gives."""

    name: str
    type: ColumnType
    precision: str = "ms"


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table in order. `stored` tables have virtual columns besides, and
    their first column is the time.
    """

    columns: tuple[Output, ...]
    precision: str = "ms"
    stored: bool = True
    #: name of the table's database
    database: str = ""
    #: columns that a child table has one value of, in lower case
    tags: frozenset[str] = frozenset()
    #: columns that `*` leaves out, in lower case
    hidden: frozenset[str] = frozenset()
    #: columns that tell apart rows of one time
    row_keys: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[Output, ...]:
        """Return the columns that `*` means."""
        if not self.hidden:
            return self.columns
        return tuple(c for c in self.columns if c.name.lower() not in self.hidden)


@dataclass(frozen=True)
class Relation:
    """A table or a subquery in FROM under the name that the query knows it by."""

    name: str
    table: TableColumns

    @property
    def columns(self) -> tuple[Output, ...]:
        return self.table.columns

    def is_called(self, name: str) -> bool:
        """Tell if a query may call it *name*."""
        return self.name.lower() == name.lower()

    def find(self, name: str) -> Output | None:
        """Return the column called *name*, in any case."""
        wanted = name.lower()
        for column in self.columns:
            if column.name.lower() == wanted:
                return column
        if not self.table.stored:
            return None
        if wanted in _VIRTUAL:
            return Output(wanted, _VIRTUAL[wanted], self.table.precision)
        time = self.columns[0]
        return time if wanted in TIME_ALIASES and time.type == TIMESTAMP else None

    def names(self) -> Iterator[str]:
        """Yield every name that may be meant."""
        yield from (c.name for c in self.columns)
        if self.table.stored:
            yield "tbname"


@dataclass(frozen=True)
class Alias:
    """A name that the select list gives to an expression."""

    output: Output
    aggregated: bool
    #: it has OVER in it
    windowed: bool = False
    #: it has a function of a row and the rows before it
    of_series: bool = False


@dataclass
class SelectScope:
    """The names that the expressions of one SELECT may use."""

    outer: SelectScope | None = None
    relations: list[Relation] = field(default_factory=list)
    #: columns that JOIN … USING makes one of, in lower case
    merged: set[str] = field(default_factory=set)
    #: names of the select list, in lower case
    aliases: dict[str, Alias] = field(default_factory=dict)

    def relation(self, name: str, database: str = "") -> Relation | None:
        """Return the relation called *name*, in any case."""
        for relation in self.relations:
            fits = not database or relation.table.database.lower() == database.lower()
            if relation.is_called(name) and fits:
                return relation
        return None

    def having(self, name: str) -> list[Relation]:
        """Return the relations with a column *name*; one that is merged is the first one's."""
        found = [r for r in self.relations if r.find(name) is not None]
        return found[:1] if name.lower() in self.merged else found

    def names(self) -> list[str]:
        """Return every name that may be meant here, the nearest scope first."""
        own = [n for r in self.relations for n in r.names()]
        own += [a.output.name for a in self.aliases.values()]
        return own + (self.outer.names() if self.outer is not None else [])


def table_name(node: exp.Expr) -> str:
    """Return the name that a query knows an item of FROM by."""
    return str(node.alias or node.name)

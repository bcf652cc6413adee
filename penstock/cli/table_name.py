"""Names of tables and streams on a command line, and the unit of their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from penstock.errors import ConfigError
from penstock.sql.words import in_backticks

if TYPE_CHECKING:
    from penstock.client.connection import Connection


@dataclass(frozen=True)
class TableName:
    """`database.table`, or `table` beside a database that an option names."""

    database: str
    table: str

    @classmethod
    def parse(cls, given: str, database: str | None = None) -> Self:
        """Read a name; backticks around its parts may be there. Raises ConfigError."""
        first, dot, rest = given.partition(".")
        owner, table = (first, rest) if dot else (database or "", first)
        owner, table = owner.strip("`"), table.strip("`")
        if not owner:
            raise ConfigError(f"which database is {given} in?", hint="write DATABASE.TABLE")
        if not table:
            raise ConfigError(f"{given} names no table", hint="write DATABASE.TABLE")
        return cls(owner, table)

    @property
    def sql(self) -> str:
        """The name as SQL, whatever words are in it."""
        return f"{in_backticks(self.database)}.{in_backticks(self.table)}"

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


def precision_of(client: Connection, database: str) -> str | None:
    """Return the unit of the ticks of a database's times (`ms`, `us`, `ns`); None when there is no
    such database.
    """
    listed = client.query("SELECT name, `precision` FROM information_schema.ins_databases").rows
    units = {str(name).lower(): str(unit) for name, unit in listed}
    return units.get(database.lower())

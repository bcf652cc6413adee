"""A table as InfluxDB's clients see it: a measurement with fields and tags."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.catalog.model import Database, Table
from penstock.catalog.view import Catalog
from penstock.sql.plan import TICKS_PER_SECOND, Column
from penstock.types import ColumnType

_FLOATS = frozenset(("FLOAT", "DOUBLE", "DECIMAL"))
_TEXTS = frozenset(("VARCHAR", "NCHAR", "VARBINARY", "JSON", "GEOMETRY"))


@dataclass(frozen=True)
class Measurement:
    """Names are looked up as the catalog does, whatever their case."""

    table: Table

    @property
    def time(self) -> str:
        return self.table.columns[0].name

    @property
    def tick(self) -> int:
        """Nanoseconds of a tick of its times."""
        return 10**9 // TICKS_PER_SECOND[self.table.precision]

    @property
    def fields(self) -> list[Column]:
        return sorted(self.table.columns[1:], key=lambda c: c.name)

    @property
    def tags(self) -> list[Column]:
        return sorted(self.table.tags, key=lambda c: c.name)

    def field(self, name: str) -> Column | None:
        return _find(self.table.columns[1:], name)

    def tag(self, name: str) -> Column | None:
        return _find(self.table.tags, name)


def _find(columns: tuple[Column, ...], name: str) -> Column | None:
    return next((c for c in columns if c.name.lower() == name.lower()), None)


def table_name(home: Database, measurement: str) -> str:
    """Return the name of the table that points of *measurement* go to."""
    return measurement.replace(".", "_") if home.dot_to_underscore else measurement


def measurements(catalog: Catalog, database: str) -> list[Measurement]:
    """Return all of a database, by name."""
    return [Measurement(t) for t in sorted(catalog.tables(database), key=lambda t: t.name)]


def field_type(kind: ColumnType) -> str:
    """Return what InfluxDB calls a type."""
    if kind.kind == "BOOL":
        return "boolean"
    if kind.kind in _FLOATS:
        return "float"
    return "string" if kind.kind in _TEXTS else "integer"


def is_number(kind: ColumnType) -> bool:
    return kind.kind != "TIMESTAMP" and field_type(kind) in ("integer", "float")

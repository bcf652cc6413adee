"""Lists of Flight SQL: catalogs, databases, tables with their columns, keys, as one user may see
them.

A database is Flight SQL's schema. All of them are in one catalog, because drivers walk from
catalogs to schemas to tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from penstock.auth.access import Access, visible
from penstock.catalog.model import External, Table
from penstock.catalog.view import Catalog
from penstock.sql.plan import Column
from services.store import flight_features
from services.store.flightsql import FlightCommand
from services.store.name_patterns import NamePattern

#: the only catalog
CATALOG = "penstock"
_TABLE = "TABLE"
_VIEW = "VIEW"
_TYPE_NAME = b"ARROW:FLIGHT:SQL:TYPE_NAME"
_PRECISION = b"ARROW:FLIGHT:SQL:PRECISION"
_SCALE = b"ARROW:FLIGHT:SQL:SCALE"
_TEXT = pa.utf8()


def _schema(*fields: tuple[str, pa.DataType, bool]) -> pa.Schema:
    """Return a schema of (name, type, nullable)."""
    return pa.schema([pa.field(name, kind, nullable) for name, kind, nullable in fields])


CATALOGS = _schema(("catalog_name", _TEXT, False))
DATABASES = _schema(("catalog_name", _TEXT, True), ("db_schema_name", _TEXT, False))
TABLES = _schema(
    ("catalog_name", _TEXT, True),
    ("db_schema_name", _TEXT, True),
    ("table_name", _TEXT, False),
    ("table_type", _TEXT, False),
)
TABLES_WITH_SCHEMA = TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
TABLE_TYPES = _schema(("table_type", _TEXT, False))
PRIMARY_KEYS = _schema(
    ("catalog_name", _TEXT, True),
    ("db_schema_name", _TEXT, True),
    ("table_name", _TEXT, False),
    ("column_name", _TEXT, False),
    ("key_name", _TEXT, True),
    ("key_sequence", pa.int32(), False),
)
FOREIGN_KEYS = _schema(
    ("pk_catalog_name", _TEXT, True),
    ("pk_db_schema_name", _TEXT, True),
    ("pk_table_name", _TEXT, False),
    ("pk_column_name", _TEXT, False),
    ("fk_catalog_name", _TEXT, True),
    ("fk_db_schema_name", _TEXT, True),
    ("fk_table_name", _TEXT, False),
    ("fk_column_name", _TEXT, False),
    ("key_sequence", pa.int32(), False),
    ("fk_key_name", _TEXT, True),
    ("pk_key_name", _TEXT, True),
    ("update_rule", pa.uint8(), False),
    ("delete_rule", pa.uint8(), False),
)
#: (user, command) → a list
_Answer = Callable[[str, FlightCommand], pa.Table]
_WITH_TABLES = "CommandGetTables"


class FlightLists:
    """Answers metadata commands. Any thread."""

    def __init__(self, catalog: Callable[[], Catalog], access: Access) -> None:
        self._catalog = catalog
        self._access = access
        self._known: dict[str, tuple[pa.Schema, _Answer]] = {
            "CommandGetCatalogs": (CATALOGS, self._catalogs),
            "CommandGetDbSchemas": (DATABASES, self._databases),
            _WITH_TABLES: (TABLES, self._tables),
            "CommandGetTableTypes": (TABLE_TYPES, self._table_types),
            "CommandGetPrimaryKeys": (PRIMARY_KEYS, self._primary_keys),
            "CommandGetExportedKeys": (FOREIGN_KEYS, self._foreign_keys),
            "CommandGetImportedKeys": (FOREIGN_KEYS, self._foreign_keys),
            "CommandGetCrossReference": (FOREIGN_KEYS, self._foreign_keys),
            "CommandGetSqlInfo": (flight_features.FEATURES, self._features),
            "CommandGetXdbcTypeInfo": (flight_features.TYPES, self._types),
        }

    def knows(self, command: FlightCommand) -> bool:
        """Tell whether *command* asks for a list."""
        return command.name in self._known

    def schema(self, command: FlightCommand) -> pa.Schema:
        """Return the schema of the list that *command* asks for."""
        if command.name == _WITH_TABLES and command.number(5):
            return TABLES_WITH_SCHEMA
        return self._known[command.name][0]

    def table(self, user: str, command: FlightCommand) -> pa.Table:
        """Return the list, as *user* may see it. Raises ValueError."""
        return self._known[command.name][1](user, command)

    # ---------------------------------------------------------------- lists

    def _catalogs(self, _: str, __: FlightCommand) -> pa.Table:
        return _table(CATALOGS, [(CATALOG,)])

    def _databases(self, user: str, command: FlightCommand) -> pa.Table:
        names = self._database_names(user, command.text(1), command.text(2))
        return _table(DATABASES, [(CATALOG, name) for name in names])

    def _tables(self, user: str, command: FlightCommand) -> pa.Table:
        name_fits = _pattern(command.text(3))
        kinds = command.texts(4)
        with_schema = bool(command.number(5))
        rows: list[tuple[Any, ...]] = []
        for database in self._database_names(user, command.text(1), command.text(2)):
            for name, kind, entry in sorted(_entries(self._seen(user), database), key=_by_name):
                if not name_fits(name) or (kinds and kind not in kinds):
                    continue
                row = (CATALOG, database, name, kind)
                rows.append((*row, _columns_of(entry)) if with_schema else row)
        return _table(self.schema(command), rows)

    def _table_types(self, _: str, __: FlightCommand) -> pa.Table:
        return _table(TABLE_TYPES, [(_TABLE,), (_VIEW,)])

    def _primary_keys(self, user: str, command: FlightCommand) -> pa.Table:
        """Return the time column: with the name of its child table it is a row's key."""
        wanted = (command.text(3) or "").lower()
        home = command.text(2)
        rows = [
            (CATALOG, database, name, entry.columns[0].name, None, 1)
            for database in self._database_names(user, command.text(1), None)
            if home is None or home.lower() == database.lower()
            for name, _, entry in _entries(self._seen(user), database)
            if name.lower() == wanted
        ]
        return _table(PRIMARY_KEYS, rows)

    def _foreign_keys(self, _: str, __: FlightCommand) -> pa.Table:
        """Return none: tables refer to no others."""
        return FOREIGN_KEYS.empty_table()

    def _features(self, _: str, command: FlightCommand) -> pa.Table:
        return flight_features.features(command.numbers(1))

    def _types(self, _: str, command: FlightCommand) -> pa.Table:
        given = any(number == 1 for number, _ in command.fields)
        return flight_features.types(command.number(1) if given else None)

    # ---------------------------------------------------------------- parts

    def _seen(self, user: str) -> Catalog:
        return visible(self._catalog(), self._access, user)

    def _database_names(self, user: str, catalog: str | None, pattern: str | None) -> list[str]:
        """Return the names of databases that fit, in order; in another catalog there are none."""
        if catalog not in (None, CATALOG):
            return []
        fits = _pattern(pattern)
        return sorted(d.name for d in self._seen(user).databases() if fits(d.name))


def _by_name(entry: tuple[str, str, Table | External]) -> tuple[str, str]:
    return entry[0], entry[1]


def _entries(catalog: Catalog, database: str) -> Iterator[tuple[str, str, Table | External]]:
    """Yield what a SELECT can name in a database, with its type: child tables are not among it,
    since there may be a million of them.
    """
    for table in catalog.tables(database):
        yield table.name, _TABLE, table
    for external in catalog.externals(database):
        yield external.name, _TABLE, external
    for view in catalog.views(database):
        target = catalog.table_by_id(view.target_id)
        if target is not None and not view.mirror:
            yield view.name, _VIEW, target


def _columns_of(entry: Table | External) -> bytes:
    """Return the columns of a table, then its tags, as a serialised schema."""
    fields = [
        _field_of(column, entry.precision, nullable=at > 0)
        for at, column in enumerate((*entry.columns, *entry.tags))
    ]
    return bytes(pa.schema(fields).serialize())


def _field_of(column: Column, precision: str, *, nullable: bool) -> pa.Field:
    # a type's name is what `GetXdbcTypeInfo` calls it: tools look for it there
    metadata = {_TYPE_NAME: column.type.kind.encode()}
    if column.type.kind == "DECIMAL":
        metadata[_PRECISION] = str(column.type.precision).encode()
        metadata[_SCALE] = str(column.type.scale).encode()
    elif column.type.sized:
        metadata[_PRECISION] = str(column.type.length).encode()
    return pa.field(column.name, column.type.arrow(precision), nullable, metadata)


def _table(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _pattern(like: str | None) -> Callable[[str], bool]:
    """Return a test of names by a pattern; None fits all."""
    return (lambda _: True) if like is None else NamePattern(like).fits

"""The rows of `pg_catalog` and `information_schema`: what there is, as one user may see it. A
database is a schema; child tables are left out, of which there may be a million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from gateway.postgres.catalog_columns import INFORMATION, PG_CATALOG, TABLES
from gateway.postgres.pg_types import (
    ALL_TYPES,
    ARRAY_TYPES,
    NUMERIC,
    PgType,
    pg_type_of_column,
)
from gateway.postgres.translate import CATALOG
from penstock.catalog.model import External, Table
from penstock.catalog.view import Catalog
from penstock.sql.plan import Column

#: added to the ids of the catalog, above the oids of PostgreSQL's own
FIRST_OID = 100_000
ROOT_OID = 10
_CALLER_OID = 16_384
_CATALOG_OID = 16_385
#: the table of settings, as the engine calls it
SETTINGS = "p_pg_settings"
_HEAP = 2
_SYSTEM = {PG_CATALOG: 11, INFORMATION: 13_000}
#: oids of tables that tools name
CLASSES = {
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_authid": 1260,
    "pg_database": 1262,
    "pg_am": 2601,
    "pg_attrdef": 2604,
    "pg_constraint": 2606,
    "pg_description": 2609,
    "pg_index": 2610,
    "pg_language": 2612,
    "pg_namespace": 2615,
    "pg_rewrite": 2618,
    "pg_trigger": 2620,
    "pg_extension": 3079,
}
#: PostgreSQL's long names of types, by their oids
LONG_NAMES = {
    16: "boolean",
    18: '"char"',
    20: "bigint",
    21: "smallint",
    23: "integer",
    700: "real",
    701: "double precision",
    1042: "character",
    1043: "character varying",
    1083: "time without time zone",
    1114: "timestamp without time zone",
    1184: "timestamp with time zone",
}
_FLAGS = {
    "relpersistence": "p",
    "relreplident": "d",
    "relhasindex": False,
    "relisshared": False,
    "relhasrules": False,
    "relhastriggers": False,
    "relhassubclass": False,
    "relrowsecurity": False,
    "relforcerowsecurity": False,
    "relispopulated": True,
    "relispartition": False,
    "relhasoids": False,
    "relam": _HEAP,
    "relowner": ROOT_OID,
    "relchecks": 0,
    "reltype": 0,
    "reloftype": 0,
    "reltablespace": 0,
    "reltoastrelid": 0,
    "relfilenode": 0,
    "relpages": 0,
    "reltuples": -1.0,
}
Row = Mapping[str, Any]


def settings_table(settings: Mapping[str, str]) -> pa.Table:
    """Return `pg_settings` of a connection."""
    return _table(SETTINGS, ({"name": n, "setting": s} for n, s in settings.items()))


def _table(name: str, rows: Iterable[Row]) -> pa.Table:
    """Return a table by its name in the engine; what *rows* do not have is NULL."""
    schema = TABLES[name]
    held = list(rows)
    arrays = [pa.array([row.get(f.name) for row in held], f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


@dataclass(frozen=True)
class PgRelation:
    """What a SELECT can name: a table, or a view by its target."""

    oid: int
    schema: str
    namespace: int
    name: str
    kind: str
    entry: Table | External

    def columns(self) -> Iterator[tuple[int, Column, bool]]:
        """Yield number, column, and whether it is a tag."""
        entry = self.entry
        for number, column in enumerate((*entry.columns, *entry.tags), 1):
            yield number, column, number > len(entry.columns)


class CatalogTables:
    """Tables as one user sees them at one revision, made when they are asked for."""

    def __init__(self, catalog: Catalog, name: str, user: str, root: str) -> None:
        """
        Args:
            catalog: as far as *user* sees it.
            name: what the client calls the database that it is connected to.
            root: the mesh's own user, who owns all there is.
        """
        self._catalog = catalog
        self._name = name
        self._user = user
        self._root = root
        self._made: dict[str, pa.Table] = {}
        self._rows: dict[str, Callable[[], Iterable[Row]]] = {
            "p_pg_am": self._access_methods,
            "p_pg_attribute": self._attributes,
            "p_pg_class": self._classes,
            "p_pg_database": self._databases,
            "p_pg_description": self._descriptions,
            "p_pg_namespace": self._namespaces,
            "p_pg_roles": self._roles,
            "p_pg_tables": self._tables,
            "p_pg_tablespace": self._tablespaces,
            "p_pg_type": self._types,
            "p_pg_user": self._users,
            "p_pg_views": self._views,
            "i_columns": self._information_columns,
            "i_schemata": self._schemata,
            "i_tables": self._information_tables,
            "i_views": self._information_views,
        }

    def table(self, name: str) -> pa.Table:
        """Return a table by its name in the engine."""
        if name not in self._made:
            self._made[name] = _table(name, self._rows.get(name, list)())
        return self._made[name]

    def namespace_oid(self, schema: str) -> int | None:
        """Return the oid of a schema; None: there is none."""
        if schema in _SYSTEM:
            return _SYSTEM[schema]
        found = self._catalog.database(schema)
        return None if found is None else FIRST_OID + found.id

    def class_oid(self, schema: str | None, name: str) -> int | None:
        """Return the oid of a table; None: there is none."""
        if schema in (None, PG_CATALOG) and name in CLASSES:
            return CLASSES[name]
        for relation in self._relations:
            fits = schema is None or relation.schema.lower() == schema.lower()
            if fits and relation.name.lower() == name.lower():
                return relation.oid
        return None

    @cached_property
    def _relations(self) -> list[PgRelation]:
        found = []
        for database in self._catalog.databases():
            namespace = FIRST_OID + database.id
            for oid, name, kind, entry in _entries(self._catalog, database.name):
                found.append(
                    PgRelation(FIRST_OID + oid, database.name, namespace, name, kind, entry)
                )
        return found

    # ---------------------------------------------------------------- pg_catalog

    def _access_methods(self) -> list[Row]:
        return [{"oid": _HEAP, "amname": "heap", "amtype": "t"}]

    def _namespaces(self) -> list[Row]:
        named = [*_SYSTEM.items()]
        named += [(d.name, FIRST_OID + d.id) for d in self._catalog.databases()]
        return [{"oid": o, "nspname": n, "nspowner": ROOT_OID} for n, o in named]

    def _classes(self) -> Iterator[Row]:
        for name, oid in CLASSES.items():
            system = {"relname": name, "relnamespace": _SYSTEM[PG_CATALOG], "relkind": "r"}
            yield {**_FLAGS, "oid": oid, **system}
        for one in self._relations:
            count = len(one.entry.columns) + len(one.entry.tags)
            named = {"oid": one.oid, "relname": one.name, "relnamespace": one.namespace}
            yield {**_FLAGS, **named, "relkind": one.kind, "relnatts": count}

    def _attributes(self) -> Iterator[Row]:
        for one in self._relations:
            for number, column, _ in one.columns():
                kind = pg_type_of_column(column.type)
                yield {
                    "attrelid": one.oid,
                    "attname": column.name,
                    "atttypid": kind.oid,
                    "attlen": kind.size,
                    "attnum": number,
                    "attndims": 0,
                    "atttypmod": _type_modifier(column, kind),
                    "attnotnull": number == 1,
                    "atthasdef": False,
                    "attidentity": "",
                    "attgenerated": "",
                    "attisdropped": False,
                    "attislocal": True,
                    "attinhcount": 0,
                    "attcollation": 0,
                    "attstorage": "p",
                    "attcompression": "",
                    "attstattarget": -1,
                }

    def _descriptions(self) -> Iterator[Row]:
        for one in self._relations:
            comment = one.entry.options.get("comment") if isinstance(one.entry, Table) else None
            place = {"objoid": one.oid, "classoid": CLASSES["pg_class"]}
            if comment:
                yield {**place, "objsubid": 0, "description": comment}
            for number, _, is_tag in one.columns():
                if is_tag:
                    yield {**place, "objsubid": number, "description": "tag"}

    def _databases(self) -> Iterator[Row]:
        named = [(_CATALOG_OID, CATALOG)]
        named += [(FIRST_OID + d.id, d.name) for d in self._catalog.databases()]
        for oid, name in named:
            yield {
                "oid": oid,
                "datname": name,
                "datdba": ROOT_OID,
                "encoding": 6,
                "datlocprovider": "c",
                "datistemplate": False,
                "datallowconn": True,
                "datconnlimit": -1,
                "dattablespace": 1663,
                "datcollate": "C",
                "datctype": "C",
            }

    def _roles(self) -> Iterator[Row]:
        for oid, name in self._role_names():
            everything = name == self._root
            yield {
                "oid": oid,
                "rolname": name,
                "rolsuper": everything,
                "rolinherit": True,
                "rolcreaterole": everything,
                "rolcreatedb": everything,
                "rolcanlogin": True,
                "rolreplication": False,
                "rolconnlimit": -1,
                "rolbypassrls": False,
            }

    def _users(self) -> Iterator[Row]:
        for oid, name in self._role_names():
            yield {"usename": name, "usesysid": oid, "usesuper": name == self._root}

    def _role_names(self) -> Iterator[tuple[int, str]]:
        yield ROOT_OID, self._root
        if self._user != self._root:
            yield _CALLER_OID, self._user

    def _types(self) -> Iterator[Row]:
        arrays = {kind.array: kind for kind in ALL_TYPES if kind.array}
        for kind in (*ALL_TYPES, *ARRAY_TYPES, *_further_arrays(arrays)):
            element = arrays.get(kind.oid)
            yield {
                "oid": kind.oid,
                "typname": kind.name,
                "typnamespace": _SYSTEM[PG_CATALOG],
                "typowner": ROOT_OID,
                "typlen": kind.size,
                "typtype": "b",
                "typcategory": kind.category,
                "typispreferred": False,
                "typisdefined": True,
                "typdelim": ",",
                "typrelid": 0,
                "typelem": element.oid if element is not None else 0,
                "typarray": kind.array,
                "typinput": "array_in" if element is not None else f"{kind.name}in",
                "typoutput": "array_out" if element is not None else f"{kind.name}out",
                "typnotnull": False,
                "typbasetype": 0,
                "typtypmod": -1,
                "typndims": 0,
                "typcollation": 0,
            }

    def _tables(self) -> Iterator[Row]:
        for one in self._of_kind("r"):
            yield {"schemaname": one.schema, "tablename": one.name, "tableowner": self._root}

    def _tablespaces(self) -> list[Row]:
        return [{"oid": 1663, "spcname": "pg_default", "spcowner": ROOT_OID}]

    def _views(self) -> Iterator[Row]:
        for one in self._of_kind("v"):
            yield {"schemaname": one.schema, "viewname": one.name, "viewowner": self._root}

    def _of_kind(self, kind: str) -> Iterator[PgRelation]:
        return (one for one in self._relations if one.kind == kind)

    # ---------------------------------------------------------------- information_schema

    def _schemata(self) -> Iterator[Row]:
        for name in (*_SYSTEM, *(d.name for d in self._catalog.databases())):
            yield {"catalog_name": self._name, "schema_name": name, "schema_owner": self._root}

    def _information_tables(self) -> Iterator[Row]:
        for one in self._relations:
            yield {
                **self._place(one),
                "table_type": "BASE TABLE" if one.kind == "r" else "VIEW",
                "is_insertable_into": "NO",
                "is_typed": "NO",
            }

    def _information_views(self) -> Iterator[Row]:
        for one in self._of_kind("v"):
            yield {**self._place(one), "is_updatable": "NO", "is_insertable_into": "NO"}

    def _information_columns(self) -> Iterator[Row]:
        for one in self._relations:
            for number, column, _ in one.columns():
                kind = pg_type_of_column(column.type)
                decimal = kind == NUMERIC and column.type.precision > 0
                yield {
                    **self._place(one),
                    "column_name": column.name,
                    "ordinal_position": number,
                    "is_nullable": "NO" if number == 1 else "YES",
                    "data_type": LONG_NAMES.get(kind.oid, kind.name),
                    "numeric_precision": column.type.precision if decimal else None,
                    "numeric_scale": column.type.scale if decimal else None,
                    "udt_catalog": self._name,
                    "udt_schema": PG_CATALOG,
                    "udt_name": kind.name,
                    "is_identity": "NO",
                    "is_generated": "NEVER",
                    "is_updatable": "NO",
                }

    def _place(self, one: PgRelation) -> Row:
        return {"table_catalog": self._name, "table_schema": one.schema, "table_name": one.name}


def _further_arrays(arrays: Mapping[int, PgType]) -> list[PgType]:
    """Return the types of the arrays that ARRAY_TYPES lacks, of elements by their arrays' oids."""
    shown = {kind.oid for kind in ARRAY_TYPES}
    others = [(oid, kind) for oid, kind in arrays.items() if oid not in shown]
    return [PgType(f"_{kind.name}", oid, -1, 0, "A") for oid, kind in others]


def _type_modifier(column: Column, kind: PgType) -> int:
    if kind != NUMERIC or not column.type.precision:
        return -1
    return (column.type.precision << 16 | column.type.scale) + 4


def _entries(catalog: Catalog, database: str) -> Iterator[tuple[int, str, str, Table | External]]:
    """Yield id, name, kind and columns of what a SELECT can name in a database."""
    for table in catalog.tables(database):
        yield table.id, table.name, "r", table
    for external in catalog.externals(database):
        yield external.id, external.name, "r", external
    for view in catalog.views(database):
        target = catalog.table_by_id(view.target_id)
        if target is not None and not view.mirror:
            yield view.id, view.name, "v", target

"""The catalog as a Confluent Schema Registry would show it: subjects, versions, ids and schema
texts.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import schemas
from penstock.catalog.model import Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.codec import avro_schema


@dataclass(frozen=True)
class Registered:
    """`version` counts from 1 within the subject; `schema` is the Avro schema's JSON text."""

    subject: str
    version: int
    id: int
    schema: str


def subjects(catalog: Catalog) -> list[str]:
    return sorted(t.subject for t in catalog.tables())


def table_of(catalog: Catalog, subject: str) -> Table | None:
    """The table whose rows have *subject*."""
    return next((t for t in catalog.tables() if t.subject == subject), None)


def versions_of(table: Table) -> list[Registered]:
    """All versions of a table's subject, the newest last."""
    return [_describe(table, v) for v in table.versions]


def schema_text(catalog: Catalog, schema_id: int) -> str | None:
    """JSON of the schema with this id, built-in ones included."""
    for name, built_in in schemas.BUILT_IN_IDS.items():
        if built_in == schema_id:
            return json.dumps(schemas.load(name), separators=(",", ":"))
    found = catalog.schema(schema_id)
    return _describe(*found).schema if found else None


def built_in_schemas() -> dict[str, dict[str, Any]]:
    """Return the Avro schemas of the mesh's own records by name."""
    return {name: schemas.load(name) for name in schemas.BUILT_IN_IDS}


def of_id(catalog: Catalog, schema_id: int) -> Registered | None:
    """The table's subject and version that *schema_id* stands for."""
    found = catalog.schema(schema_id)
    return _describe(*found) if found else None


def _describe(table: Table, version: TableVersion) -> Registered:
    text = json.dumps(avro_schema(version, table.precision, table.name), separators=(",", ":"))
    return Registered(table.subject, table.versions.index(version) + 1, version.schema_id, text)

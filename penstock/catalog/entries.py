"""Catalog entries to log records and back: key `kind/id`, value an Avro CatalogEntry with the
entry's JSON, null removes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, cast

from penstock.catalog.model import (
    Child,
    CompatibilityLevel,
    Database,
    Entry,
    External,
    Role,
    Snode,
    StreamEntry,
    Table,
    User,
    View,
    VirtualColumn,
)
from penstock.errors import SchemaError
from penstock.records import CatalogRecord, decode, encode
from penstock.sql.plan import StreamPlan, build
from penstock.udf.function import UserFunction

#: key of the record that says who leads (`epoch`) and which id comes next (`body`)
LEADER_KEY = b"leader/0"


def kind_of(entry: Entry) -> str:
    kinds: dict[type[Entry], str] = {
        Database: "database",
        Table: "table",
        Child: "child",
        StreamEntry: "stream",
        External: "external",
        View: "view",
        User: "user",
        Role: "role",
        UserFunction: "function",
        Snode: "snode",
        CompatibilityLevel: "compatibility",
    }
    return kinds[type(entry)]


def key_of(entry: Entry) -> bytes:
    return f"{kind_of(entry)}/{entry.id}".encode()


def id_of(key: bytes) -> int | None:
    """Return the id in a record's key, or None when *key* names no entry."""
    _, _, number = key.decode(errors="replace").partition("/")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 19 else None


def to_value(entry: Entry, epoch: int) -> bytes:
    """Record value of *entry* as written under the catalog lease's *epoch*."""
    body: Any
    if isinstance(entry, StreamEntry):
        body = {
            "plan": entry.plan.to_json(),
            "status": entry.status,
            "created": entry.created,
            "reason": entry.reason,
        }
        if entry.maker:
            body["maker"] = entry.maker
    elif isinstance(entry, Child):
        body = [entry.database, entry.stable_id, list(entry.tags)]
        if entry.origins:
            body.append([dataclasses.asdict(o) for o in entry.origins])
    else:
        body = dataclasses.asdict(entry)
    return encode(
        CatalogRecord(
            kind_of(entry), entry.id, entry.name, epoch, json.dumps(body, separators=(",", ":"))
        )
    )


def leader_value(epoch: int, next_id: int) -> bytes:
    return encode(CatalogRecord("leader", 0, "", epoch, str(next_id)))


def read(value: bytes) -> CatalogRecord:
    """Raises SchemaError when *value* is no catalog record."""
    return decode(CatalogRecord, value)


def from_record(record: CatalogRecord) -> Entry | None:
    """The entry in *record*; None for a kind that this build does not know.

    Raises:
        SchemaError: the body is not what its kind says.
    """
    make = _MAKERS.get(record.kind)
    if make is None:
        return None
    try:
        return make(record, json.loads(record.body))
    except (ValueError, TypeError, KeyError) as error:
        raise SchemaError(
            f"malformed catalog entry {record.kind}/{record.id}", detail=str(error)
        ) from None


def _stream(record: CatalogRecord, body: Any) -> StreamEntry:
    return StreamEntry(
        record.id,
        StreamPlan.from_json(body["plan"]),
        body["status"],
        body["created"],
        body["reason"],
        body.get("maker", ""),
    )


_MAKERS: dict[str, Callable[[CatalogRecord, Any], Entry]] = {
    "database": lambda record, body: cast(Database, build(Database, body)),
    "table": lambda record, body: cast(Table, build(Table, body)),
    "child": lambda record, body: Child(
        record.id,
        body[0],
        body[1],
        record.name,
        tuple(body[2]),
        tuple(VirtualColumn(**o) for o in (body[3] if len(body) > 3 else ())),
    ),
    "stream": _stream,
    "external": lambda record, body: cast(External, build(External, body)),
    "view": lambda record, body: cast(View, build(View, body)),
    "user": lambda record, body: cast(User, build(User, body)),
    "role": lambda record, body: cast(Role, build(Role, body)),
    "snode": lambda record, body: cast(Snode, build(Snode, body)),
    "function": lambda record, body: cast(UserFunction, build(UserFunction, body)),
    "compatibility": lambda record, body: cast(CompatibilityLevel, build(CompatibilityLevel, body)),
}

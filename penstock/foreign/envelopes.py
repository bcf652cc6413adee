"""Debezium's envelopes, out of JSON with and without the schema beside it, or out of Avro: what
happened to one row of a database, and the types of its values.

What becomes of the table's rows is the business of `penstock.foreign.changes`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from penstock.errors import SchemaError
from penstock.foreign.avro import row_of
from penstock.foreign.connect import ConnectTypes, kinds_of_avro, kinds_of_json, struct_of_json
from penstock.foreign.framing import strip_frame, unframe
from penstock.foreign.registry import SchemaRegistry

#: read (by a snapshot), created, updated, deleted
Op = Literal["r", "c", "u", "d"]
_OPS: Mapping[str, Op] = {"r": "r", "c": "c", "u": "u", "d": "d"}


@dataclass(frozen=True)
class Record:
    """Values of a row, or of its key, and their kinds as far as a schema says them."""

    values: Mapping[str, Any]
    kinds: ConnectTypes = field(default_factory=dict)


@dataclass(frozen=True)
class Envelope:
    """One change of one row."""

    op: Op
    before: Record | None
    after: Record | None


class Envelopes(Protocol):
    """Reads keys and values of messages. Both raise SchemaError; RemoteError: a schema cannot be
    had now.
    """

    def key(self, data: bytes) -> Record | None:
        """The key of a row; None where the message's key is no record."""

    def envelope(self, data: bytes) -> Envelope | None:
        """The change; None for a message that is about no row."""


class JsonEnvelopes:
    """JSON objects, as Connect's converter writes them with and without `schemas.enable`."""

    def __init__(self) -> None:
        #: the last schemas beside a payload, and what they say: they hardly ever change
        self._key_kinds: tuple[Any, ConnectTypes] = (None, {})
        self._row_kinds: tuple[Any, ConnectTypes] = (None, {})

    def key(self, data: bytes) -> Record | None:
        try:
            payload, schema = _load(data)
            if schema is not None and schema != self._key_kinds[0]:
                self._key_kinds = (schema, kinds_of_json(schema))
        except ValueError:
            # Connect's other converters write keys as text; a value says all that matters, too
            return None
        if not isinstance(payload, dict):
            return None
        return Record(payload, self._key_kinds[1] if schema is not None else {})

    def envelope(self, data: bytes) -> Envelope | None:
        try:
            payload, schema = _load(data)
            if schema is not None and schema != self._row_kinds[0]:
                row = struct_of_json(schema, "after") or struct_of_json(schema, "before")
                self._row_kinds = (schema, kinds_of_json(row))
        except ValueError as wrong:
            raise SchemaError(
                "the message is no JSON object of Debezium",
                code="E_MALFORMED",
                detail=str(wrong)[:200],
            ) from None
        kinds = self._row_kinds[1] if schema is not None else {}
        return _envelope(payload, kinds, kinds)


class AvroEnvelopes:
    """Avro records behind the id of their schema."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        #: (id of a schema, field of it) → kinds of the record that is there
        self._kinds: dict[tuple[int, str], ConnectTypes] = {}

    def key(self, data: bytes) -> Record | None:
        if data[:1] != b"\0":
            return None
        schema_id, body = unframe(data)
        schema = self._registry.schema(schema_id)
        if not isinstance(schema, dict) or schema.get("type") != "record":
            return None
        return Record(row_of(body, schema), self._of(schema_id, schema, ""))

    def envelope(self, data: bytes) -> Envelope | None:
        schema_id, body = unframe(data)
        schema = self._registry.schema(schema_id)
        payload = row_of(body, schema)
        before, after = (self._of(schema_id, schema, name) for name in ("before", "after"))
        return _envelope(payload, before, after)

    def _of(self, schema_id: int, schema: Any, name: str) -> ConnectTypes:
        found = self._kinds.get((schema_id, name))
        if found is None:
            found = self._kinds[schema_id, name] = kinds_of_avro(schema, (name,) if name else ())
        return found


def _load(data: bytes) -> tuple[Any, Any]:
    """Payload of a JSON message, and the schema beside it (None: there is none). Raises
    ValueError.
    """
    try:
        found = json.loads(strip_frame(data))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
        return found["payload"], found["schema"]
    return found, None


def _envelope(payload: Any, before: ConnectTypes, after: ConnectTypes) -> Envelope | None:
    if not isinstance(payload, dict) or not isinstance(payload.get("op"), str):
        raise SchemaError(
            "the message is no envelope of Debezium",
            code="E_MALFORMED",
            detail="it has no op; rows without envelope are read as JSONEachRow or Avro",
        )
    if payload["op"] == "m":
        return None
    op = _OPS.get(payload["op"])
    if op is None:
        raise SchemaError(
            "this operation of Debezium is not followed",
            code="E_MALFORMED",
            detail="TRUNCATE: delete the rows here, too"
            if payload["op"] == "t"
            else f"op {payload['op'][:20]!r}",
        )
    return Envelope(op, _record(payload, "before", before), _record(payload, "after", after))


def _record(payload: Mapping[str, Any], name: str, kinds: ConnectTypes) -> Record | None:
    values = payload.get(name)
    if values is None:
        return None
    if not isinstance(values, dict):
        raise SchemaError(
            f"{name} is no record",
            code="E_MALFORMED",
            detail="documents of MongoDB are not followed",
        )
    return Record(values, kinds)

"""What clients of the schema registry send: schemas to look up or to check, and levels."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from gateway.guard import body
from gateway.ingest import parse_json
from gateway.registry.answers import invalid_level, invalid_schema
from penstock.codec.compatibility import LEVELS, AvroSchema, parse
from penstock.errors import SchemaError

_LARGEST_BODY = 4 << 20


async def read_object(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a body. Raises SchemaError: it is none."""
    sent = parse_json(await body(request, _LARGEST_BODY))
    if not isinstance(sent, dict):
        raise SchemaError("the body is no JSON object", code="E_BODY")
    return sent


def schema_of(sent: dict[str, Any]) -> AvroSchema:
    """Return the schema of a body `{"schema": "…"}`. Raises RegistryRefusal: it is no Avro schema
    that stands alone.
    """
    if sent.get("schemaType", "AVRO") not in ("AVRO", None):
        raise invalid_schema("schemaType has to be AVRO")
    if sent.get("references"):
        raise invalid_schema("there are no references here")
    text = sent.get("schema")
    if not isinstance(text, str):
        raise invalid_schema("schema has to be a text")
    try:
        return parse(text)
    except SchemaError as wrong:
        raise invalid_schema(wrong.detail) from None


def level_of(sent: dict[str, Any]) -> str:
    """Return the level of a body `{"compatibility": "…"}`. Raises RegistryRefusal."""
    level = sent.get("compatibility")
    if not isinstance(level, str) or level.upper() not in LEVELS:
        raise invalid_level()
    return level.upper()

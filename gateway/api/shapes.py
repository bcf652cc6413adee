"""JSON Schemas in few words: the parts that descriptions of bodies and messages are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

#: a JSON Schema
Shape: TypeAlias = dict[str, Any]

TEXT: Shape = {"type": "string"}
INTEGER: Shape = {"type": "integer"}
NUMBER: Shape = {"type": "number"}
BOOLEAN: Shape = {"type": "boolean"}
ANYTHING: Shape = {}


def described(shape: Shape, description: str) -> Shape:
    """Return *shape* with a description."""
    return {**shape, "description": description}


def one_of(*values: str) -> Shape:
    """Return the shape of a text that is one of *values*."""
    return {"type": "string", "enum": list(values)}


def exactly(value: str) -> Shape:
    """Return the shape of a text that is always *value*."""
    return {"const": value}


def array(items: Shape) -> Shape:
    return {"type": "array", "items": items}


def mapping(values: Shape, description: str = "") -> Shape:
    """Return the shape of an object whose keys are anybody's."""
    shape: Shape = {"type": "object", "additionalProperties": values}
    return described(shape, description) if description else shape


def record(
    required: Mapping[str, Shape],
    optional: Mapping[str, Shape] | None = None,
    description: str = "",
) -> Shape:
    """Return the shape of an object.

    Args:
        required: fields that are always there.
        optional: fields that may be left out.
    """
    shape: Shape = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        shape["required"] = list(required)
    return described(shape, description) if description else shape


def nullable(shape: Shape) -> Shape:
    """Return *shape* with null as a further value; *shape* has one type."""
    return {**shape, "type": [shape["type"], "null"]}


def either(*shapes: Shape) -> Shape:
    """Return the shape of what has at least one of *shapes*."""
    return {"anyOf": list(shapes)}


def refer(name: str) -> Shape:
    """Return a reference to a shape among the components of a document."""
    return {"$ref": f"#/components/schemas/{name}"}


def unless_empty(name: str, value: Any) -> dict[str, Any]:
    """Return the field of a document, if it has a value."""
    return {name: value} if value else {}

"""All operations and the shapes they refer to; each module has those of one subject."""

from __future__ import annotations

from gateway.api.operation import Operations
from gateway.api.operations import (
    console,
    errors,
    health,
    influx,
    points,
    registry,
    rows,
    statements,
    tdengine,
    waiting,
)
from gateway.api.shapes import Shape

_PARTS = (statements, rows, points, influx, tdengine, waiting, registry, console, health)

OPERATIONS: Operations = {
    route: operation for part in _PARTS for route, operation in part.OPERATIONS.items()
}
SHAPES: dict[str, Shape] = {
    name: shape for part in (errors, *_PARTS) for name, shape in part.SHAPES.items()
}
#: subject → what it is about, in the order of the documents
TAGS = {part.TAG: part.ABOUT for part in _PARTS}

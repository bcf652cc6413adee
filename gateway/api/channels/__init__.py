"""All channels and the shapes they refer to; each module has those of one subject."""

from __future__ import annotations

from gateway.api.channels import (
    notifications,
    row_socket,
    subscriptions,
    tdengine_socket,
    topics,
)
from gateway.api.operations import errors, health
from gateway.api.shapes import Shape

_PARTS = (row_socket, tdengine_socket, subscriptions, notifications, topics)

CHANNELS = tuple(channel for part in _PARTS for channel in part.CHANNELS)
SHAPES: dict[str, Shape] = {
    "Error": errors.SHAPES["Error"],
    "Counters": health.SHAPES["Counters"],
    "StreamCounters": health.SHAPES["StreamCounters"],
    **{name: shape for part in _PARTS for name, shape in part.SHAPES.items()},
}

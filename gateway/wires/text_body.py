"""Bodies of text: read in the loop when they are short, else in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from gateway.wires.points import LineError, Point
from penstock import tuning
from penstock.errors import SchemaError

#: text to points, and what of it is refused
Read: TypeAlias = Callable[[str], tuple[list[Point], list[LineError]]]


async def read_text(read: Read, data: bytes) -> tuple[list[Point], list[LineError]]:
    """Return the points of a body, and its bad lines. Raises SchemaError."""
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        raise SchemaError("the body is not UTF-8", code="E_BODY", detail=str(wrong)) from None
    if len(text) < tuning.LINE_CHARACTERS_PARSED_IN_LOOP:
        return read(text)
    return await asyncio.to_thread(read, text)

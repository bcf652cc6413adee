"""Where texts of statements are read: in the event loop while they are short, else in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from penstock import tuning

T = TypeVar("T")


async def parse_apart(text: str, read: Callable[[], T]) -> T:
    """Return what *read* makes of *text*, without holding up other requests for long."""
    if len(text) < tuning.SQL_CHARACTERS_PARSED_IN_LOOP:
        return read()
    return await asyncio.to_thread(read)

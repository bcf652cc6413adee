"""Constants that are read when a query is, and not row by row."""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

import polars as pl

from penstock.sql.functions.base import CompileScope
from penstock.sql.functions.time import parse_iso

#: longer texts are not remembered
_LONGEST_REMEMBERED = 64


def ticks_of(text: str, precision: str, timezone: str) -> int | None:
    """Return the ticks of a time written as text, in *timezone* unless it names its own; None where
    it is no time.
    """
    if len(text) > _LONGEST_REMEMBERED:
        return _read(text, precision, timezone)
    return _remembered(text, precision, timezone)


def _read(text: str, precision: str, timezone: str) -> int | None:
    scope = CompileScope(precision, timezone, _refuse)
    ticks = pl.select(parse_iso(pl.lit(text), scope)).item()
    return None if ticks is None else int(ticks)


_remembered = lru_cache(maxsize=1024)(_read)


def _refuse(node: object, message: str, **more: object) -> NoReturn:
    """Reading a time refuses nothing: what is none is NULL."""
    raise AssertionError(message)

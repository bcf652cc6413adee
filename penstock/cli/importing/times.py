"""Times that are written out, as Arrow reads them. A time without a zone is UTC."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

#: the finest one that holds the years in question
_UNITS = ("ns", "us")
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"


def read_times(texts: pa.Array) -> pa.Array | None:
    """Return texts as times in UTC with all their digits; None when one of them is no time."""
    if not pa.types.is_string(texts.type):
        return None
    zoned = pc.match_substring_regex(texts, _ZONE)
    # a date ends like an offset, `-01`: it has no colon
    zoned = pc.and_(zoned, pc.match_substring(texts, ":"))
    nothing = pa.scalar(None, pa.string())
    for unit in _UNITS:
        try:
            with_zone = pc.if_else(zoned, texts, nothing).cast(pa.timestamp(unit, "UTC"))
            without = pc.if_else(zoned, nothing, texts).cast(pa.timestamp(unit))
        except pa.ArrowException:
            continue
        return pc.coalesce(with_zone, without.cast(pa.int64()).cast(pa.timestamp(unit, "UTC")))
    return None


def to_unit(times: pa.Array, unit: str, *, cut: bool) -> pa.Array:
    """Return times with the digits of *unit*.

    Args:
        cut: leave out further digits.

    Raises:
        pyarrow.ArrowException: there are more digits, and they are not to be left out.
    """
    if cut:
        times = pc.floor_temporal(times, unit=_WORDS[unit])
    kind = times.type
    if pa.types.is_timestamp(kind) and kind.tz is None:
        times = times.cast(pa.int64()).cast(pa.timestamp(kind.unit, "UTC"))
    return times.cast(pa.timestamp(unit, "UTC"))


_WORDS = {"ms": "millisecond", "us": "microsecond", "ns": "nanosecond"}

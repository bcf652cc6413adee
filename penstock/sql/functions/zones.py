"""Names of time zones."""

from __future__ import annotations

import re

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?$", re.IGNORECASE)


def zone(name: str) -> str:
    """IANA name of a time zone; whole-hour offsets such as `+08:00` and `UTC-5` are understood,
    others have no such name.
    """
    found = _OFFSET.match(name)
    if name in ("", "Z", "z"):
        return "UTC"
    if not found or int(found[3] or 0) or int(found[2]) > 12:
        return name
    hours = int(found[2])
    # The signs of Etc zones are turned round.
    return "UTC" if hours == 0 else f"Etc/GMT{'-' if found[1] == '+' else '+'}{hours}"

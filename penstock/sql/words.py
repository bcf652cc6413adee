"""Words of the dialect: which cannot be names without backticks, how names and strings are quoted,
what was meant.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

#: Words that end a name-less position; as a name they need backticks. Everything else may be a
#: name.
RESERVED = frozenset(
    "ALL ALTER AND AS ASC BETWEEN BY CASE CAST COUNT_WINDOW CREATE CROSS DELETE DESC DISTINCT DROP"
    " ELSE END EVENT_WINDOW EXISTS FALSE FILL FROM FULL GROUP HAVING IN INNER INSERT INTERVAL INTO"
    " IS JOIN LEFT LIKE LIMIT MATCH NMATCH NOT NOTIFY NULL OFFSET ON OR ORDER OUTER PARTITION RIGHT"
    " SELECT SESSION SET SLIDING SLIMIT SOFFSET STATE_WINDOW SUBTABLE TAGS THEN TRUE TRUE_FOR UNION"
    " USING VALUES WHEN WHERE WITH CONTAINS NOW TODAY".split()
)
#: Hint for a time that cannot be read.
TIME_FORMS = (
    "write '2024-01-31 12:00:00.000' in the time zone of the request, '2024-01-31T12:00:00Z', an"
    " offset such as '2024-01-31 12:00:00+08:00', or ticks as a whole number"
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}
_ESCAPED = re.compile(r"[\\'\n\r\t\0]")


def is_plain(name: str) -> bool:
    """Return True when *name* can be written without backticks."""
    return bool(_PLAIN.match(name)) and name.upper() not in RESERVED


def quote_name(name: str) -> str:
    """*name* as SQL, in backticks where it needs them."""
    return name if is_plain(name) else in_backticks(name)


def in_backticks(name: str) -> str:
    """*name* as SQL, whatever words are reserved where it is read."""
    return "`" + name.replace("`", "``") + "`"


def quote_string(text: str) -> str:
    """*text* as an SQL string."""
    return "'" + _ESCAPED.sub(lambda m: _ESCAPES[m.group()], text) + "'"


def meant(word: str, known: Iterable[str]) -> str:
    """A hint: the known word nearest to *word* and what is known."""
    words = sorted(known)
    near = difflib.get_close_matches(word.upper(), words, 1, 0.6)
    return (f"did you mean {near[0]}? " if near else "") + "known here: " + ", ".join(words)

"""What the rows of one body may take: a few bytes can stand for many rows of long texts, so it is
counted before they are made.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.protobuf import Refuse

MOST_ROW_BYTES = 128 << 20
#: what a value of a row costs besides its text
_CELL = 64


class RowBudget:
    """Bytes that are left for the rows of a body."""

    def __init__(self, too_large: Refuse) -> None:
        self._left = MOST_ROW_BYTES
        self._too_large = too_large

    def spend(self, rows: int, tags: Sequence[tuple[str, str]]) -> None:
        """Count rows that have these tags and one value. Raises SchemaError: they are too many."""
        row = _CELL * (len(tags) + 2) + sum(len(text) for _, text in tags)
        self._left -= rows * row
        if self._left < 0:
            raise self._too_large(f"its rows are more than {MOST_ROW_BYTES} bytes")

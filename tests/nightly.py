"""How long tests may take: those of `make check` are short, those of `make nightly` thorough."""

from __future__ import annotations

import os

NIGHTLY = os.environ.get("PENSTOCK_NIGHTLY") == "1"
_MORE = 5


def drawn(count: int) -> int:
    """Examples of a property: *count*, or many more at night."""
    return count * _MORE if NIGHTLY else count

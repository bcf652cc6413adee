"""How long tests may take: `make check` and CI try few examples of a property, `make unit` all of
them, `make nightly` many more.
"""

from __future__ import annotations

import os

NIGHTLY = os.environ.get("PENSTOCK_NIGHTLY") == "1"
_FEW = os.environ.get("PENSTOCK_EXAMPLES") == "few"
_MORE = 5
_LESS = 4


def drawn(count: int) -> int:
    """Examples of a property: *count*, many more at night, a part of them where few are asked for."""
    if NIGHTLY:
        return count * _MORE
    return max(count // _LESS, 1) if _FEW else count

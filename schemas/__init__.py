"""The wire contract: the Avro schemas beside this file, loaded as text. Imports nothing but the
standard library.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

#: ids of the built-in schemas in the Confluent framing; tables' ids start at 100
BUILT_IN_IDS = {
    "control": 1,
    "exchange": 2,
    "events": 3,
    "dead_letter": 4,
    "manifest": 5,
    "catalog_entry": 6,
}


@cache
def text(name: str) -> str:
    """Schema *name* (`control`, `events`, …) as the JSON text of its file."""
    return resources.files(__package__).joinpath(f"{name}.avsc").read_text(encoding="utf-8")


def load(name: str) -> dict[str, Any]:
    """Schema *name* as a fresh dictionary."""
    return dict(json.loads(text(name)))

"""The documents in docs/openapi.json and docs/asyncapi.json, made of the code:
`python -m gateway.api.reference` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gateway.api import asyncapi, openapi
from penstock.installed import version

DOCS = Path(__file__).parents[2] / "docs"
#: file → what makes its document for a version
DOCUMENTS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "openapi.json": openapi.document,
    "asyncapi.json": asyncapi.document,
}


def text_of(name: str) -> str:
    """Return the text that a file has to have."""
    made = DOCUMENTS[name](version())
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in DOCUMENTS:
        (DOCS / name).write_text(text_of(name), encoding="utf-8")

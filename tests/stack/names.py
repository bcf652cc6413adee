"""Names of a test's own in a mesh that all tests share."""

from __future__ import annotations

import secrets


def unique(prefix: str) -> str:
    """A database name that no other test has."""
    return f"{prefix}_{secrets.token_hex(4)}"

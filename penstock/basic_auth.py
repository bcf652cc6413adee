"""The `Authorization` header of a user with a password (RFC 7617)."""

from __future__ import annotations

import base64


def basic_header(user: str, password: str) -> str:
    """Return the header's value.

    >>> basic_header("root", "x")
    'Basic cm9vdDp4'
    """
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

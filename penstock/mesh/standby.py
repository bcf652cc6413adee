"""The second process of the stream jobs: one of the two leads, the other one stands by; which is
which changes with each takeover, and they say it themselves.
"""

from __future__ import annotations

import http.client
import json
import urllib.request

STANDBY = "spark2"


def remark(port: int) -> str:
    """Return what a ready service says of itself at its health port."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:
            return "; ".join(json.loads(answer.read()).get("remarks", {}).values())
    except (OSError, http.client.HTTPException, ValueError):
        return ""

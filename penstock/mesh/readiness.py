"""What the health port of a service says of its readiness."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request

#: what is said of a service whose health port does not answer, and before what one says that is
#: stuck
_NO_ANSWER = "its health port"
_STUCK = "stuck: "


def unresponsive(why: str) -> bool:
    """Tell from what a service waits for that only a new process will do: no answer, or one that
    says it is stuck.
    """
    return why == _NO_ANSWER or why.startswith(_STUCK)


def ask(port: int) -> str:
    """Return what /readyz says is missing."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
            return ""
    except urllib.error.HTTPError as answer:
        try:
            body = json.loads(answer.read())
            waiting = body["waiting"]
        except (ValueError, KeyError, OSError):
            return f"HTTP {answer.code}"
        missing = (
            "; ".join(f"{name}: {why}" if why else name for name, why in waiting.items()) or "ready"
        )
        return f"{_STUCK}{missing}" if body.get("stuck") else missing
    except (OSError, http.client.HTTPException):
        return _NO_ANSWER

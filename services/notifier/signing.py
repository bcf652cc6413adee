"""Signatures of HTTP requests as Standard Webhooks has them: HMAC-SHA256 over the request's id, the
time and the body, so that libraries of that name check them.

Keys are files `secrets/notify/<database>/<name>` of the data directory, read whenever a connection
begins, and nowhere else: neither statements nor the catalog have them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from pathlib import Path

from services.notifier.target_connection import TargetFailed

#: a key that begins so is base64 behind it
_PREFIX = "whsec_"
#: shorter keys can be guessed
_LEAST_BYTES = 16


def read_key(data_dir: Path, signed_by: str) -> bytes:
    """Read a signing key. Raises TargetFailed."""
    parts = signed_by.split("/")
    if len(parts) != 2 or any(part.startswith(".") for part in parts):
        raise TargetFailed("its signing key has a name that no file can have")
    path = data_dir.joinpath("secrets", "notify", *parts)
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError):
        raise TargetFailed(f"its signing key secrets/notify/{signed_by} cannot be read") from None
    try:
        key = _decoded(text)
    except (ValueError, binascii.Error):
        raise TargetFailed(
            f"its signing key secrets/notify/{signed_by} is no base64 behind {_PREFIX}"
        ) from None
    if len(key) < _LEAST_BYTES:
        raise TargetFailed(
            f"its signing key secrets/notify/{signed_by} is shorter than {_LEAST_BYTES} bytes"
        )
    return key


def _decoded(text: str) -> bytes:
    if text.startswith(_PREFIX):
        return base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    return text.encode()


def signature_headers(
    key: bytes, request_id: str, seconds: int, body: bytes
) -> list[tuple[str, str]]:
    """Return the headers that sign *body*, sent at *seconds* since the epoch."""
    signed = f"{request_id}.{seconds}.".encode() + body
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return [
        ("webhook-id", request_id),
        ("webhook-timestamp", str(seconds)),
        ("webhook-signature", "v1," + base64.b64encode(digest).decode()),
    ]

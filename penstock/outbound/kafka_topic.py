"""Addresses `kafka://topic` of NOTIFY: topics of the mesh's own broker."""

from __future__ import annotations

_SCHEME = "kafka://"


def is_kafka(url: str) -> bool:
    """Tell whether *url* is `kafka://…`."""
    return url[: len(_SCHEME)].lower() == _SCHEME


def topic_of(url: str) -> str:
    """Return what stands behind `kafka://`."""
    return url[len(_SCHEME) :]

"""Settings of the snode. `penstock.config.settings` has the shared ones, among them where backups
go.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from penstock.config.settings import Settings


class SnodeSettings(Settings):
    """How many backups of each query are kept."""

    service: ClassVar[str] = "snode"

    #: what SHOW SNODES gives as its endpoint; empty: host and health port
    address: str = ""
    #: the newest backups that are kept …
    keep_newest: int = Field(default=5, ge=1)
    #: … and the newest of each of this many hours …
    keep_hours: int = Field(default=24, ge=0)
    #: … and of each of this many days
    keep_days: int = Field(default=7, ge=0)
    #: time between two backups of one query at least, seconds; an epoch in between is left out
    min_seconds: float = Field(default=1.0, ge=0)
    #: PLACE:exit:COUNT for tests of crashes
    failpoints: str = ""

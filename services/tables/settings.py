"""Settings of a node of stream tables; the groups are shared settings (`PENSTOCK_STREAMING_…`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from penstock.config.settings import Port, Settings


class TablesSettings(Settings):
    """`port` serves producers and subscribers."""

    service: ClassVar[str] = "tables"

    port: Port = 7720
    #: this node's alias, one of those in the groups (others may run too: they have no table)
    alias: str = "NODE1"
    #: where other nodes and gateways reach it; empty: host and port
    advertised_url: str = ""
    #: where clients reach it, when their network has another address for it; empty: where the
    #: others do
    client_url: str = ""
    #: the node's copies on disk; empty: `tables/<alias>` in the data directory. Each node needs one
    #: of its own
    persistence_dir: Path | None = None

    #: seconds a leader leads without renewing; a node that is gone altogether is replaced after
    #: that
    lease_seconds: float = Field(1.5, ge=0.2)
    #: seconds without a sign of life after which a member does not count for the majority
    alive_seconds: float = Field(2.0, ge=0.2)
    #: rows of a table that wait for their file on disk, at most (and never more than its cache
    #: limit)
    flush_rows: int = Field(50_000, ge=1)
    #: … and for how long
    flush_seconds: float = Field(2.0, gt=0)
    #: how often retention is looked at
    sweep_seconds: float = Field(1.0, gt=0)
    #: bytes of writes that may wait in the leader; beyond, producers are told to try later
    max_pending_bytes: int = Field(128 << 20, ge=1 << 20)
    #: largest write
    max_body: int = Field(64 << 20, ge=1 << 10)
    #: seconds until a record that Kafka has not confirmed has failed, and the leader steps down
    ack_timeout: float = Field(120.0, gt=0)
    #: seconds between signs of life to subscribers that get no rows
    idle_seconds: float = Field(0.3, gt=0)
    #: producers that are remembered per table, to recognise what they send again
    max_producers: int = Field(100_000, ge=1)

    @field_validator("persistence_dir", mode="after")
    @classmethod
    def _usable(cls, value: Path | None) -> Path | None:
        """Said at the start, before there are rows to keep."""
        if value is not None:
            there = next(p for p in (value.absolute(), *value.absolute().parents) if p.exists())
            if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
                raise ValueError(f"{there} is no directory that can be written")
        return value

    @field_validator("alias", mode="after")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value:
            raise ValueError("a node needs an alias")
        return value

    @property
    def directory(self) -> Path:
        return self.persistence_dir or self.data_dir / "tables" / self.alias

    @property
    def url(self) -> str:
        return self._with_scheme(self.advertised_url or f"http://{self.host}:{self.port}")

    @property
    def url_for_clients(self) -> str:
        """Empty: `url`."""
        return self._with_scheme(self.client_url)

    def _with_scheme(self, url: str) -> str:
        """With a certificate the node speaks TLS only, whatever its address was written like."""
        return url.replace("http://", "https://", 1) if self.tls_cert is not None else url

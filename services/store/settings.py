"""Settings of the store."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from penstock.config.settings import Port, Settings


class StoreSettings(Settings):
    """`port` serves Arrow Flight."""

    service: ClassVar[str] = "store"

    port: Port = 7702
    #: a partition is flushed when its tail has this many rows …
    flush_rows: int = Field(default=500_000, ge=1)
    #: … or its oldest row is this old
    flush_seconds: float = Field(default=30.0, gt=0)
    #: records stay in Kafka this long after they are in segments
    log_days: float = Field(default=7.0, ge=0)
    #: how often KEEP and the log's age are looked at
    sweep_seconds: float = Field(default=60.0, gt=0)
    #: how long a query waits for the caller's own writes
    own_writes_seconds: float = Field(default=10.0, gt=0)
    #: SELECTs that one user may run at once over Flight; 0: as many as come. Gateways, which come
    #: as root, have limits of their own
    max_queries_per_user: int = Field(default=16, ge=0)
    #: a Flight connection ends when it was silent for so many seconds, and those that a query may
    #: take besides; 0: never. gRPC's clients leave a connection by themselves after half an hour
    #: without calls: before that, a call may come just as its connection is ended
    idle_seconds: float = Field(default=1800.0, ge=0)
    query_memory: str = "512MB"
    #: most that a query may write to disk while it sorts or joins
    query_spill: str = "4GB"
    #: a query is ended after so many seconds
    query_seconds: float = Field(default=120.0, gt=0)
    query_threads: int = Field(default=2, ge=1)
    #: most rows a query may return
    max_result_rows: int = Field(default=10_000_000, ge=1)
    #: most bytes of them, as Arrow
    max_result_bytes: int = Field(default=1 << 30, ge=1)

    @property
    def silent_seconds(self) -> float:
        """Seconds of silence after which a Flight connection ends; 0: never."""
        return self.idle_seconds + self.query_seconds if self.idle_seconds else 0.0

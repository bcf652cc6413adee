"""Settings of the stream jobs; read as PENSTOCK_SPARK_…"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import fsspec
from pydantic import Field, SecretStr, field_validator

from penstock.config.settings import Settings
from penstock.storage.checkpoints import directory_of
from penstock.windows.kernel import ROOM

#: Spark takes no shorter ones in real time
SHORTEST_EPOCH_SECONDS = 5.0


class SparkSettings(Settings):
    """Defaults fit a laptop."""

    service: ClassVar[str] = "spark"

    #: `local` = in this process's JVM with `slots` task slots; else a cluster: `spark://host:7077`,
    #: `k8s://…`, `yarn`
    master: str = "local"
    #: one per partition of every topic that is read, and two to spare; topics at rest need none,
    #: and with too few the others take turns
    slots: int = Field(default=256, ge=4)
    driver_memory: str = "1g"
    #: more options of the driver's JVM; `penstock up` adds its cache of what was learned
    jvm_options: str = ""
    driver_host: str = "127.0.0.1"
    #: heap of each executor's JVM on a cluster; the work is done in Python processes beside it
    executor_memory: str = "1g"
    #: what the machines of a cluster (`spark://…`) prove to each other; without one Spark's own
    #: settings say; `local` makes its own
    secret: SecretStr | None = None
    #: more settings of Spark, as JSON: what a cluster asks for
    conf: dict[str, str] = Field(default_factory=dict)
    #: Spark's own offsets, written by the driver alone: beside the state, or in `data_dir` when
    #: that is no directory
    checkpoint_dir: str = Field(
        default_factory=lambda data: (
            f"{directory_of(data['state_dir']) or data['data_dir'] / 'state'}/checkpoints"
        )
    )
    #: how long a real-time epoch lasts, 5 at least; a turn pauses results for 0.1 to 0.4 s
    epoch_seconds: float = Field(default=60.0, ge=SHORTEST_EPOCH_SECONDS)
    #: time between state files while records flow
    snapshot_seconds: float = Field(default=1.0, gt=0)
    #: records that the operator takes in at once, and bytes, counted with what Arrow has put aside
    #: for them (twice the records, about)
    unit_records: int = Field(default=65_536, ge=1)
    unit_bytes: int = Field(default=32 * 1024 * 1024, ge=1)
    #: rows that a stream keeps in each partition though their windows are over; corrections of
    #: older ones read those again
    live_rows: int = Field(default=ROOM, ge=0)
    #: rows of history that are read and computed at once
    history_rows: int = Field(default=200_000, ge=1)
    #: a query further behind than this is caught up in micro-batches
    backlog_records: int = Field(default=50_000, ge=1)
    #: a topic to which nothing comes for so long is at rest: no query reads it until something
    #: does; 0: all are read always
    idle_seconds: float = Field(default=120.0, ge=0)
    #: time between ticks to topics whose streams need processing time
    tick_seconds: float = Field(default=1.0, gt=0)
    #: how long a partition may take to report a stream before its `stream_on` is sent again
    grace_seconds: float = Field(default=20.0, gt=0)
    #: a node that runs the jobs and is not heard of for this long loses them to one that stands by
    lease_seconds: float = Field(default=6.0, ge=1)
    #: start no query, so that streams can be dropped before they run (`penstock up --safe`)
    safe_mode: bool = False
    #: PLACE:exit:COUNT,… for tests of crashes
    failpoints: str = ""

    @field_validator("state_dir", mode="after")
    @classmethod
    def _reachable(cls, value: str) -> str:
        try:
            fsspec.core.url_to_fs(value)
        except (ValueError, ImportError) as unknown:
            raise ValueError(f"no file system for it: {unknown}") from unknown
        return value

    @property
    def scratch_dir(self) -> Path:
        """Where workers leave small notes for whoever takes their place, on any machine: beside the
        state, unless that is no directory.
        """
        return Path(directory_of(self.state_dir) or self.data_dir / "state") / "notes"

    @property
    def entry_file(self) -> Path:
        """Where the driver leaves definitions for workers on its machine; see `entry_file.py`."""
        return self.scratch_dir / "entries"

    def checkpoint(self, topic: str, topic_id: int) -> str:
        """Where Spark keeps the offsets of one topic's query."""
        return f"{self.checkpoint_dir}/{topic_id}/{topic}"

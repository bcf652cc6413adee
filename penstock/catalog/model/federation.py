"""Tables of other deployments, and materialized views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.sql.plan import Column, Precision


@dataclass(frozen=True)
class External:
    """A table of another deployment under a name of ours. Its password is a secret file, never here
    (`penstock.link.external`).
    """

    id: int
    database: str
    name: str
    #: `penstock` (also written `timeplus`)
    type: str
    #: each shard's replicas, `host:port`
    shards: tuple[tuple[str, ...], ...]
    remote_database: str
    remote_name: str
    columns: tuple[Column, ...]
    tags: tuple[Column, ...] = ()
    precision: Precision = "ms"
    key_column: str | None = None
    user: str = "default"
    secure: bool = False
    #: certificates to trust besides the system's
    ca_file: str = ""
    #: of the table's topic over there, so that a mirror has as many
    partitions: int = 1
    #: ids that the table had at each shard when it was looked at
    remote_ids: tuple[int, ...] = ()
    #: epoch milliseconds
    created: int = 0
    #: a stream table over there: its leader fills ROW_ID
    numbered: bool = False
    #: the user who made it, whose rights say where it may connect to; empty: made before that was
    #: kept
    maker: str = ""

    @property
    def time_column(self) -> str:
        return self.columns[0].name


@dataclass(frozen=True)
class View:
    """A materialized view: `sql` is its SELECT, which filters and projects rows of the source into
    the target, each exactly once.
    """

    id: int
    database: str
    name: str
    sql: str
    #: id of a Table or an External
    source_id: int
    target_id: int
    #: the target was made for it and goes with it
    owns_target: bool = False
    status: Literal["running", "paused"] = "running"
    #: a token for each shard of the source: the first row that counts
    begin: tuple[str, ...] = ()
    #: epoch milliseconds
    created: int = 0
    timezone: str = "UTC"
    #: made by Penstock itself, so that a stream can compute over an external stream
    mirror: bool = False
    #: what becomes of a row that the target does not take: it is tried again for ever, it stops the
    #: view, or it is a dead letter
    on_error: Literal["retry", "stop", "drop"] = "retry"
    #: how often RESUME was said: one more, and a view that stopped at a row goes on
    resumed: int = 0

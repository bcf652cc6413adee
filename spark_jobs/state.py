"""State files of one topic-partition: named by the next source offset, a full one now and then and
deltas between.

`penstock.storage.statefile` says how a file is sealed. Inside is an Arrow IPC file (zstd): its rows
are the kernels' frames, its metadata is everything else. It appears under its name whole or not at
all. A file that fails its digest, or whose chain of bases is broken, counts as absent: the one
before it is a valid state too, it only means reading more of the log again. Refused: files of a
newer version.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import fsspec
import polars as pl
import pyarrow as pa

from penstock.runtime import log
from penstock.runtime.failpoints import Failpoints
from penstock.storage.statefile import file_name, in_order, is_state, seal, unseal
from penstock.windows.kernel import Delta
from spark_jobs.replay import Position, Published

_MAX_DELTAS = 50
#: bytes of deltas that a full snapshot is not worth yet, however small it is
_DELTAS_KEPT_BYTES = 64 * 1024
_SCHEMA = pa.schema(
    [
        ("stream", pa.int64()),
        ("full", pa.bool_()),
        ("frame", pa.string()),
        ("data", pa.large_binary()),
    ]
)
#: a stream's plan (JSON) and whether it runs: running | paused | failed
StreamState = tuple[str, str]

_log = log.get(__name__)


@dataclass
class Snapshot:
    """One file's content; of a delta only what changed (`streams[id]` None: gone; `pending` always
    whole).
    """

    next: int
    #: append time (ms) of the newest record taken in
    time: int = -1
    #: per output "topic:partition" the offset behind the last output known to be in the log
    ends: dict[str, int] = field(default_factory=dict)
    #: per producer the highest position taken in
    seen: dict[str, Position] = field(default_factory=dict)
    pending: list[Published] = field(default_factory=list)
    streams: dict[int, StreamState | None] = field(default_factory=dict)
    deltas: dict[int, list[Delta]] = field(default_factory=dict)
    #: barriers at the exchange that have not come from every source partition yet
    waiting: dict[str, list[str]] = field(default_factory=dict)

    def merge(self, later: Snapshot) -> None:
        """Put *later*, the next file of the chain, on top."""
        self.next = later.next
        self.time = later.time
        self.pending = later.pending
        self.waiting = later.waiting
        self.ends.update(later.ends)
        self.seen.update(later.seen)
        for stream, state in later.streams.items():
            if state is None:
                self.streams.pop(stream, None)
                self.deltas.pop(stream, None)
            else:
                self.streams[stream] = state
        for stream, deltas in later.deltas.items():
            for delta in deltas:
                self.deltas[stream] = (
                    [delta] if delta.full else [*self.deltas.get(stream, []), delta]
                )


class StateFiles:
    """The directory of one topic-partition."""

    def __init__(self, directory: str, failpoints: Failpoints | None = None) -> None:
        self._fs, self._path = fsspec.core.url_to_fs(directory)
        self._fs.makedirs(self._path, exist_ok=True)
        self._local = "file" in (
            self._fs.protocol if isinstance(self._fs.protocol, tuple) else (self._fs.protocol,)
        )
        self._failpoints = failpoints or Failpoints()
        self._chain: list[str] = []
        self._old: list[str] = []
        self._full_bytes = self._delta_bytes = 0

    @property
    def newest(self) -> str:
        """Name of the file that a delta would build on; empty at the start."""
        return self._chain[-1] if self._chain else ""

    @property
    def full_due(self) -> bool:
        """Whether the next snapshot should be a full one."""
        return (
            not self._chain
            or len(self._chain) > _MAX_DELTAS
            or self._delta_bytes > max(self._full_bytes, _DELTAS_KEPT_BYTES)
        )

    def load(self) -> Snapshot | None:
        """The newest state that can be read; None when there is none at all.

        Raises:
            StateError: a file was written by a newer version.
        """
        found = in_order(self._names())
        for newest in reversed(found):
            chain = self._follow(newest)
            if chain is None:
                _log.warning(
                    "state file can't be used, taking the one before",
                    directory=self._path,
                    file=newest,
                )
                continue
            self._chain = [name for name, _, _ in chain]
            self._old = [n for n in found if n < self._chain[0]]
            self._full_bytes = chain[0][2]
            self._delta_bytes = sum(size for _, _, size in chain[1:])
            state = Snapshot(0)
            for _, snapshot, _ in chain:
                state.merge(snapshot)
            return state
        return None

    def save(self, snapshot: Snapshot, *, full: bool) -> None:
        """Write *snapshot* under its name and remove what no chain needs any more."""
        name = file_name(snapshot.next, full=full)
        data = _encode(snapshot, base="" if full else self.newest)
        self._put(name, data)
        if full:
            for old in self._old:
                self._remove(old)
            self._old = self._chain
            self._chain = [name]
            self._full_bytes = len(data)
            self._delta_bytes = 0
        else:
            self._chain.append(name)
            self._delta_bytes += len(data)
        self._failpoints.reach("after_state")

    def claim(self, owner: str, next_offset: int) -> bool:
        """Take the partition over; True when the predecessor left everything published and saved up
        to *next_offset*.
        """
        clean = self._owner() == f"clean {next_offset}"
        self._fs.pipe_file(f"{self._path}/owner", owner.encode())
        return clean

    def release(self, owner: str, next_offset: int) -> None:
        """Say that everything up to *next_offset* is published and saved, unless somebody else has
        taken over.
        """
        if self._owner() == owner:
            self._fs.pipe_file(f"{self._path}/owner", f"clean {next_offset}".encode())

    def _owner(self) -> str:
        try:
            return str(self._fs.cat_file(f"{self._path}/owner").decode())
        except FileNotFoundError:
            return ""

    def _names(self) -> Iterable[str]:
        self._fs.invalidate_cache(self._path)
        try:
            names = [str(p).rpartition("/")[2] for p in self._fs.ls(self._path, detail=False)]
        except FileNotFoundError:  # an object store has no empty directories
            return []
        return [n for n in names if is_state(n)]

    def _put(self, name: str, data: bytes) -> None:
        path = f"{self._path}/{name}"
        if not self._local:  # an object store shows an object when it is whole
            self._fs.pipe_file(path, data)
            return
        try:
            with self._fs.open(f"{path}.tmp", "wb") as out:
                half = len(data) // 2
                out.write(data[:half])
                if self._failpoints:
                    out.flush()
                    self._failpoints.reach("mid_state_file")
                out.write(data[half:])
            self._fs.mv(f"{path}.tmp", path)
        except OSError:
            self._remove(
                f"{name}.tmp"
            )  # a disk that is full must not be kept full by what did not fit
            raise

    def _remove(self, name: str) -> None:
        try:
            self._fs.rm_file(f"{self._path}/{name}")
        except FileNotFoundError:
            pass  # a predecessor that is not quite dead prunes too

    def _follow(self, newest: str) -> list[tuple[str, Snapshot, int]] | None:
        """The chain from a full file to *newest*; None when a link is missing or damaged."""
        chain: list[tuple[str, Snapshot, int]] = []
        name = newest
        while name:
            try:
                data = self._fs.cat_file(f"{self._path}/{name}")
            except FileNotFoundError:
                return None
            decoded = _decode(data, name)
            if decoded is None:
                return None
            snapshot, base = decoded
            chain.append((name, snapshot, len(data)))
            name = base
        return chain[::-1]


def _encode(snapshot: Snapshot, base: str) -> bytes:
    rows: list[tuple[int, bool, str, bytes]] = []
    for stream, deltas in snapshot.deltas.items():
        for delta in deltas:
            # a delta without frames must survive too: a full one wipes what was before it
            rows.append((stream, delta.full, "", b""))
            for frame_name, frame in delta.frames.items():
                buffer = io.BytesIO()
                # a handle of its own: polars locks the frame while it writes, and asks for the GIL
                # meanwhile; the processor's thread may ask for that lock while it holds the GIL
                # (the kernel's state holds the same frames), and both would wait for ever
                frame.clone().write_ipc_stream(buffer)
                rows.append((stream, delta.full, frame_name, buffer.getvalue()))
    meta = {
        "base": base,
        "next": snapshot.next,
        "time": snapshot.time,
        "ends": snapshot.ends,
        "seen": snapshot.seen,
        "pending": [asdict(p) for p in snapshot.pending],
        "streams": snapshot.streams,
        "waiting": snapshot.waiting,
    }
    columns = (
        [
            pa.array(values, f.type)
            for values, f in zip(zip(*rows, strict=True), _SCHEMA, strict=True)
        ]
        if rows
        else None
    )
    table = pa.table(columns, schema=_SCHEMA) if columns else _SCHEMA.empty_table()
    table = table.replace_schema_metadata({"penstock": json.dumps(meta, separators=(",", ":"))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return seal(body)


def _decode(data: bytes, name: str) -> tuple[Snapshot, str] | None:
    body = unseal(data, name)
    if body is None:
        return None
    table = pa.ipc.open_file(pa.BufferReader(body)).read_all()
    meta: dict[str, Any] = json.loads(table.schema.metadata[b"penstock"])
    deltas: dict[int, list[Delta]] = {}
    for row in table.to_pylist():
        if not row["frame"]:
            deltas.setdefault(row["stream"], []).append(Delta({}, row["full"]))
        else:
            deltas[row["stream"]][-1].frames[row["frame"]] = pl.read_ipc_stream(
                io.BytesIO(row["data"])
            )
    snapshot = Snapshot(
        next=meta["next"],
        time=meta["time"],
        ends=meta["ends"],
        seen={k: (v[0], v[1]) for k, v in meta["seen"].items()},
        pending=[Published(**p) for p in meta["pending"]],
        streams={int(k): None if v is None else (v[0], v[1]) for k, v in meta["streams"].items()},
        deltas=deltas,
        waiting=meta["waiting"],
    )
    return snapshot, meta["base"]

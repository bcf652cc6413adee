"""Backup and restore of a whole embedded mesh: catalog, segments, offsets, state, everything but
logs, scratch, secrets and what a snode keeps.

While the mesh runs, all of its files are copied once; then every process of it is stopped for the
moment in which what has changed since is copied again. So the backup is the mesh as it would be if
all of it had been killed at that moment, from which it is known to come back. Kafka's index files
are left out: a broker makes them anew. Refused: a mesh whose Kafka or whose state lies elsewhere, a
data directory that is not empty.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from penstock.errors import ConfigError, StateError
from penstock.mesh.layout import Layout
from penstock.mesh.state import read_state
from penstock.runtime import log
from penstock.runtime.mesh_members import members
from penstock.storage.backup_list import Backup, Item
from penstock.storage.vault import Vault

SUBJECT = "deployment"
#: what of the data directory a backup leaves out
_ASIDE = ("backup", "logs", "run", "secrets")
_INDEXES = (".index", ".timeindex", ".txnindex")
#: made at each start; Redis's holds its password
_MADE_ANEW = ("redis/redis.conf", "kafka/server.properties", "kafka/log4j2.yaml")
_LEFT_OUT = (".part", ".tmp", ".lock", ".restoring")
_log = log.get(__name__)


@dataclass(frozen=True)
class Done:
    """A backup that was made, and how long the mesh stood still for it."""

    backup: Backup
    paused: float


def files(root: Path) -> dict[str, tuple[int, int]]:
    """Relative path → (size, mtime in ns) of every file that belongs into a backup."""
    found = {}
    for directory, inside, listed in os.walk(root):
        if Path(directory) == root:
            inside[:] = [name for name in inside if name not in _ASIDE]
        for name in listed:
            path = Path(directory) / name
            relative = str(path.relative_to(root))
            if not _belongs(relative):
                continue
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found[relative] = (status.st_size, status.st_mtime_ns)
    return found


def _belongs(relative: str) -> bool:
    """Tell whether a backup holds the file *relative*: secrets, for one, are in none."""
    aside = relative.partition("/")[0] in _ASIDE
    return (
        not aside and not relative.endswith((*_INDEXES, *_LEFT_OUT)) and relative not in _MADE_ANEW
    )


def backup(
    layout: Layout, vault: Vault, now: int, seen: Callable[[str, int, int], None] = lambda *_: None
) -> Done:
    """Make a backup of the mesh in *layout*, whether it runs or not.

    Args:
        layout: of the mesh.
        vault: where the backup goes.
        now: epoch milliseconds.
        seen: told each file with its number and how many there are.

    Raises:
        ConfigError: it is not a whole mesh that lies here.
        StateError: a file cannot be kept.
    """
    if not (layout.kafka / "log").is_dir():
        raise ConfigError(
            f"no Kafka of a mesh in {layout.root}",
            hint=(
                "a cluster of your own is backed up with its own tools, the jobs' state by a snode"
            ),
        )
    known: dict[str, tuple[tuple[int, int], list[Item]]] = {}
    _copy(layout.root, vault, known, seen)
    with _still(layout) as began:
        _copy(layout.root, vault, known, seen, again=True)
        paused = time.monotonic() - began
    earlier = vault.backups(SUBJECT)
    items = tuple(item for _, parts in known.values() for item in parts)
    made = Backup(
        SUBJECT, now, earlier[0].number + 1 if earlier else 1, items, {"files": len(known)}
    )
    vault.publish(made)
    return Done(made, paused)


def _copy(
    root: Path,
    vault: Vault,
    known: dict[str, tuple[tuple[int, int], list[Item]]],
    seen: Callable[[str, int, int], None],
    *,
    again: bool = False,
) -> None:
    listed = files(root)
    for gone in known.keys() - listed.keys():
        del known[gone]
    for number, (path, facts) in enumerate(sorted(listed.items())):
        if path not in known or known[path][0] != facts:
            try:
                known[path] = (facts, vault.put_file(SUBJECT, path, root / path))
            except FileNotFoundError:
                if again:
                    raise StateError(
                        f"{path} is gone though nothing runs",
                        hint="does another process work in this directory?",
                    ) from None
        seen(path, number + 1, len(listed))


@contextlib.contextmanager
def _still(layout: Layout) -> Iterator[float]:
    """Every process of the mesh stops for the length of a `with`; yields when that began."""
    began = time.monotonic()
    stopped: list[psutil.Process] = []
    try:
        state = read_state(layout)
        if state is not None:
            for process in members(layout.root):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.suspend()
                    stopped.append(process)
            missed = {r["pid"] for r in state["services"].values() if r["pid"]} - {
                p.pid for p in stopped
            }
            if any(psutil.pid_exists(pid) for pid in missed):
                raise StateError(
                    "a process of the mesh cannot be stopped for the backup",
                    detail=str(sorted(missed)),
                    hint="run it as the same user",
                )
        yield began
    finally:
        for process in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()


def restore(
    layout: Layout, vault: Vault, made: Backup, seen: Callable[[Item], None] = lambda _: None
) -> None:
    """Put a backup into the empty directory of *layout*.

    Raises:
        ConfigError: the directory is not empty.
        StateError: the backup is damaged, not signed by the vault's key, or has files that no
            backup has; nothing was written then.
    """
    vault.require_trusted(made)
    foreign = [item.path for item in made.items if not _belongs(item.path)]
    if foreign:
        raise StateError(
            f"backup {made.name} has files that belong into no backup",
            detail=", ".join(foreign[:5]),
            hint="use another one",
        )
    if layout.root.exists() and any(layout.root.iterdir()):
        raise ConfigError(
            f"{layout.root} is not empty", hint="restore into a new directory: --data-dir"
        )
    for item in made.items:
        vault.extract(made, item, layout.root / item.path, layout.root)
        seen(item)

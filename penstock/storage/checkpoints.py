"""What a query of the stream jobs needs to go on elsewhere, taken into a vault and put back:
Spark's checkpoint and the state files.

The checkpoint is taken first and the state after it, so that no state is older than the offsets
Spark believes to be done; each topic-partition's chain is whole by itself, and what one is behind
another is replayed from Kafka. Files that the jobs prune while they are being taken are no fault:
the directory is looked at again. Refused: a backup in which a partition that has state has none
that is whole.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import fsspec
from fsspec.implementations.local import LocalFileSystem

from penstock.errors import StateError
from penstock.runtime import log
from penstock.storage import statefile
from penstock.storage.backup_list import Backup, Item
from penstock.storage.vault import Vault

_TRIES = 5
_log = log.get(__name__)


@dataclass(frozen=True)
class CheckpointPlace:
    """Where the stream jobs keep one query: `id` tells its topic from an earlier one of the same
    name.
    """

    query: str
    id: int
    state_dir: str
    checkpoint_dir: str

    @property
    def subject(self) -> str:
        return f"{self.query}.{self.id}"

    @property
    def state(self) -> str:
        return f"{self.state_dir}/{self.id}"

    @property
    def checkpoint(self) -> str:
        return f"{self.checkpoint_dir}/{self.id}/{self.query}"


def subject_query(subject: str) -> tuple[str, int]:
    """(query, id) of a vault's subject."""
    query, _, number = subject.rpartition(".")
    return query, int(number)


def places(state_dir: str, checkpoint_dir: str) -> list[CheckpointPlace]:
    """The queries that have a checkpoint below *checkpoint_dir*."""
    fs, root = fsspec.core.url_to_fs(checkpoint_dir)
    found = []
    for directory in _list(fs, root):
        number = directory.rpartition("/")[2]
        if number.isdigit():
            found += [
                CheckpointPlace(p.rpartition("/")[2], int(number), state_dir, checkpoint_dir)
                for p in _list(fs, directory)
            ]
    return found


def take(
    vault: Vault,
    place: CheckpointPlace,
    *,
    time: int,
    number: int,
    offsets: dict[str, int] | None = None,
    seen: Callable[[str], None] = lambda _: None,
    before_publish: Callable[[], None] = lambda: None,
) -> Backup | None:
    """Take a backup of one query and publish it; None when there is nothing to take.

    Arguments that need a word:
        time, number: milliseconds, and the epoch: they name the backup.
        seen: told each file.

    Raises:
        StateError: no whole state can be had.
    """
    items = _checkpoint(vault, place, seen)
    positions: dict[str, int] = {}
    for partition in _partitions(place):
        chain = _whole_chain(place, partition)
        for name, data in chain:
            items.append(vault.put(place.subject, f"state/{partition}/{name}", data))
            seen(name)
        if chain:
            positions[partition] = statefile.position_of(chain[-1][0])
    if not items:
        return None
    facts = {"query": place.query, "id": place.id, "offsets": offsets or {}, "positions": positions}
    backup = Backup(place.subject, time, number, tuple(items), facts)
    vault.publish(backup, before_publish)
    return backup


def _checkpoint(vault: Vault, place: CheckpointPlace, seen: Callable[[str], None]) -> list[Item]:
    fs, root = fsspec.core.url_to_fs(place.checkpoint)
    found: list[Item] = []
    for path in sorted(str(p) for p in fs.find(root)) if fs.exists(root) else ():
        name = path[len(root) :].lstrip("/")
        if name.rpartition("/")[2].startswith(".") or name.endswith(".tmp"):
            continue  # Spark's checksums of files and half-written ones
        try:
            found.append(vault.put(place.subject, f"checkpoint/{name}", fs.cat_file(path)))
        except FileNotFoundError:
            continue  # purged meanwhile: Spark needs the newest only
        seen(name)
    return found


def _partitions(place: CheckpointPlace) -> list[str]:
    fs, root = fsspec.core.url_to_fs(place.state)
    return [
        p.rpartition("/")[2]
        for p in _list(fs, root)
        if fs.isdir(p) and _is_of(place, p.rpartition("/")[2])
    ]


def _is_of(place: CheckpointPlace, directory: str) -> bool:
    topic, _, partition = directory.rpartition("-")
    return topic == place.query and partition.isdigit()


def _whole_chain(place: CheckpointPlace, partition: str) -> list[tuple[str, bytes]]:
    """The newest chain of one partition as it is now; nothing when it has no state yet."""
    for _ in range(_TRIES):
        listed, chain = _chain(f"{place.state}/{partition}")
        if chain or not listed:
            return chain
    raise StateError(
        f"{partition} of {place.query} has state files but none that is whole",
        hint="the next backup tries again",
    )


def _chain(directory: str) -> tuple[list[str], list[tuple[str, bytes]]]:
    fs, path = fsspec.core.url_to_fs(directory)
    listed = [n for n in (p.rpartition("/")[2] for p in _list(fs, path)) if statefile.is_state(n)]

    def read(name: str) -> bytes | None:
        try:
            return bytes(fs.cat_file(f"{path}/{name}"))
        except FileNotFoundError:
            return None

    return listed, statefile.newest_chain(listed, read)


def local_positions(place: CheckpointPlace) -> dict[str, int]:
    """Partition directory → next offset of the newest state that is whole there."""
    found = {}
    for partition in _partitions(place):
        _, chain = _chain(f"{place.state}/{partition}")
        if chain:
            found[partition] = statefile.position_of(chain[-1][0])
    return found


def positions_of(backup: Backup) -> dict[str, int]:
    """Partition directory → next offset of the state in *backup*; nothing where its maker wrote
    none.
    """
    found = backup.facts.get("positions")
    if not isinstance(found, dict) or not all(
        isinstance(position, int) for position in found.values()
    ):
        return {}
    return found


def newest_verified(vault: Vault, subject: str) -> Backup | None:
    """The newest backup without a fault; those with one are reported."""
    for backup in vault.backups(subject):
        wrong = vault.faults(backup)
        if not wrong:
            return backup
        _log.error(
            "a backup is damaged or not signed by this mesh, taking the one before",
            subject=subject,
            backup=backup.name,
            faults=wrong[:5],
        )
    return None


def restore(
    vault: Vault,
    backup: Backup,
    place: CheckpointPlace,
    *,
    partitions: Iterable[str] | None = None,
    checkpoint: bool = True,
    seen: Callable[[Item], None] = lambda _: None,
) -> None:
    """Put a backup in place of what is there of these partitions (by default of all), and Spark's
    checkpoint where *checkpoint* says so.

    Raises:
        StateError: a file is missing or damaged, the backup is not to be trusted, or the place is
            no directory of this machine.
    """
    vault.require_trusted(backup)
    wanted = None if partitions is None else set(partitions)
    replaced, targets = _state_targets(backup, place, wanted)
    if checkpoint:
        directory = Path(local_path(place.checkpoint))
        replaced.add(directory)
        for item in backup.items:
            kind, _, rest = item.path.partition("/")
            if kind == "checkpoint":
                targets.append((item, directory / rest, directory))
    for directory in replaced:
        shutil.rmtree(directory, ignore_errors=True)
    for item, target, below in targets:
        vault.extract(backup, item, target, below)
        seen(item)


def _state_targets(
    backup: Backup, place: CheckpointPlace, wanted: set[str] | None
) -> tuple[set[Path], list[tuple[Item, Path, Path]]]:
    """List the directories of *wanted* partitions that a backup replaces, and where it puts which
    of its items: the file, and the directory that must hold it.
    """
    state = Path(local_path(place.state))
    directories: set[Path] = set()
    targets: list[tuple[Item, Path, Path]] = []
    for item in backup.items:
        kind, _, rest = item.path.partition("/")
        if kind == "state":
            partition = _partition_of(place, backup, item)
            if wanted is None or partition in wanted:
                targets.append((item, state / rest, state))
                directories.add(state / partition)
    return directories, targets


def _partition_of(place: CheckpointPlace, backup: Backup, item: Item) -> str:
    """The directory of a state file, which must be one of this query's."""
    names = item.path.split("/")
    if len(names) != 3 or not _is_of(place, names[1]) or not statefile.is_state(names[2]):
        raise StateError(
            f"{item.path} of backup {backup.name} is no state of {place.query}",
            hint="`penstock snode list` shows others",
        )
    return names[1]


def local_path(url: str) -> str:
    """*url* as a path of this machine.

    Raises:
        StateError: it is elsewhere.
    """
    path = directory_of(url)
    if path is None:
        raise StateError(
            f"{url} is no directory of this machine",
            hint="state in an object store outlives its node and is not restored",
        )
    return path


def directory_of(url: str) -> str | None:
    """The path that *url* names on this machine's file systems, shared ones too; None for an object
    store.
    """
    fs, path = fsspec.core.url_to_fs(url)
    return str(path) if isinstance(fs, LocalFileSystem) else None


def _list(fs: fsspec.AbstractFileSystem, path: str) -> list[str]:
    fs.invalidate_cache()
    try:
        return sorted(str(p).rstrip("/") for p in fs.ls(path, detail=False))
    except FileNotFoundError:
        return []

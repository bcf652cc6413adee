"""penstock snode backup, list, verify, restore: what snodes keep of the stream jobs' state, by
hand.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import app
from penstock.cli.backup_key import KEY, UNSIGNED, Key, Unsigned, open_vault, signing_key
from penstock.cli.options import DATA_DIR, DataDir, messages
from penstock.errors import ConfigError, StateError
from penstock.mesh.layout import Layout
from penstock.mesh.process import UMASK
from penstock.mesh.state import read_state

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from penstock.storage.backup_list import Backup, Item
    from penstock.storage.vault import Vault

commands = typer.Typer(help="Backups of the stream jobs' state.", no_args_is_help=True)
app.add_typer(commands, name="snode")

BackupDir = Annotated[
    str | None,
    typer.Option(
        "--backup-dir",
        envvar=["PENSTOCK_CHECKPOINT_BACKUP_DIR", "checkpointBackupDir"],
        help="directory, rsync place or fsspec URL; default: backup/ in the data directory",
    ),
]
StateDir = Annotated[
    str | None,
    typer.Option(envvar="PENSTOCK_STATE_DIR", help="default: state/ in the data directory"),
]
CheckpointDir = Annotated[
    str | None,
    typer.Option(
        envvar="PENSTOCK_SPARK_CHECKPOINT_DIR", help="default: checkpoints/ in the state's"
    ),
]
Query = Annotated[str | None, typer.Option(help="only of this query, e.g. in.power")]
Name = Annotated[
    str | None, typer.Option("--backup", help="a backup as `list` names it; default: the newest")
]


@commands.command("backup")
def backup_now(
    data_dir: DataDir = DATA_DIR,
    backup_dir: BackupDir = None,
    state_dir: StateDir = None,
    checkpoint_dir: CheckpointDir = None,
) -> None:
    """Take a backup of every query now, from the files that are there; the mesh may run or not."""
    from penstock.storage.checkpoints import places, take

    os.umask(UMASK)
    layout = Layout(data_dir.expanduser().absolute())
    vault, (state, checkpoints) = (
        _vault(data_dir, backup_dir, signing_key(layout)),
        _directories(data_dir, state_dir, checkpoint_dir),
    )
    found = places(state, checkpoints)
    if not found:
        raise StateError(
            f"no query has a checkpoint in {checkpoints}",
            hint="is this the node that runs the jobs? --data-dir, --state-dir",
        )
    with _progress() as progress:
        for place in found:
            task = progress.add_task(place.query, total=None)
            earlier = vault.backups(place.subject)

            def advance(_: str, task: TaskID = task) -> None:
                progress.advance(task)

            number = earlier[0].number if earlier else 0
            made = take(vault, place, time=time.time_ns() // 10**6, number=number, seen=advance)
            done = progress.tasks[task].completed
            progress.update(
                task,
                total=done,
                description=f"{place.query} {made.name if made else 'has nothing yet'}",
            )


@commands.command("list")
def list_backups(
    data_dir: DataDir = DATA_DIR, backup_dir: BackupDir = None, query: Query = None
) -> None:
    """Show the backups there are, the newest of each query first."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("query", "backup", "taken", "files", "kB", "position"):
        table.add_column(
            heading,
            justify="right" if heading in ("files", "kB", "position") else "left",
            no_wrap=True,
        )
    for made in _choose(_vault(data_dir, backup_dir), query, None, every=True):
        taken = datetime.fromtimestamp(made.time / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        position = sum(made.facts["positions"].values())
        table.add_row(
            made.facts["query"],
            made.name,
            taken,
            str(len(made.items)),
            f"{made.size / 1000:.0f}",
            str(position),
        )
    console = Console(highlight=False)
    Console(highlight=False, width=max(console.width, 120)).print(table, markup=False)


@commands.command()
def verify(
    data_dir: DataDir = DATA_DIR,
    backup_dir: BackupDir = None,
    query: Query = None,
    name: Name = None,
) -> None:
    """Read every file of the backups and compare its digest; exit status 1 when one is damaged."""
    vault = _vault(data_dir, backup_dir)
    chosen = list(_choose(vault, query, name, every=name is None))
    wrong = []
    with _progress() as progress:
        task = progress.add_task("verifying", total=sum(len(b.items) for b in chosen))
        for made in chosen:
            faults = vault.faults(made, lambda _: progress.advance(task))
            wrong += [f"{made.facts['query']} {made.name}: {fault}" for fault in faults]
    for line in wrong:
        print(line)
    print(f"{len(chosen)} backups, {len(wrong)} faults")
    if wrong:
        raise typer.Exit(1)


@commands.command("restore")
def restore_backup(
    data_dir: DataDir = DATA_DIR,
    backup_dir: BackupDir = None,
    state_dir: StateDir = None,
    checkpoint_dir: CheckpointDir = None,
    query: Query = None,
    name: Name = None,
    key: Key = KEY,
    unsigned: Unsigned = UNSIGNED,
) -> None:
    """Put the newest backup of each query (or the one named) where its state was lost. The jobs
    must not run there.
    """
    from penstock.storage.checkpoints import (
        CheckpointPlace,
        local_positions,
        restore,
        subject_query,
    )

    os.umask(UMASK)
    layout = Layout(data_dir.expanduser().absolute())
    running = read_state(layout) if state_dir is None else None
    if running is not None and "spark" in running["services"]:
        raise ConfigError(
            f"the jobs run in {layout.root}",
            hint="they restore by themselves what is missing; else `penstock down` first",
        )
    vault = open_vault(_place(data_dir, backup_dir), layout, key, unsigned=unsigned)
    state, checkpoints = _directories(data_dir, state_dir, checkpoint_dir)
    with _progress() as progress:
        for made in _choose(vault, query, name, every=False):
            topic, number = subject_query(made.subject)
            place = CheckpointPlace(topic, number, state, checkpoints)
            if local_positions(place):
                raise ConfigError(
                    f"there is state of {topic} already in {place.state}",
                    hint="move it away first, or name another --state-dir",
                )
            task = progress.add_task(f"{topic} {made.name}", total=len(made.items))
            faults = vault.faults(made)
            if faults:
                raise StateError(
                    f"backup {made.name} of {topic} is damaged",
                    detail="; ".join(faults[:5]),
                    hint="--backup names another",
                )

            def advance(_: Item, task: TaskID = task) -> None:
                progress.advance(task)

            restore(vault, made, place, seen=advance)


def _choose(vault: Vault, query: str | None, name: str | None, *, every: bool) -> Iterator[Backup]:
    """Yield the backups asked for, the newest of each query or *every* one."""
    from penstock.storage.vault import mask_login

    found = False
    for subject in vault.subjects():
        backups = [b for b in vault.backups(subject) if _is_meant(b, query, name)]
        found = found or bool(backups)
        yield from backups if every else backups[:1]
    if not found:
        raise StateError(
            f"no such backup in {mask_login(vault.url)}",
            hint="`penstock snode list` shows what there is; CREATE SNODE makes some",
        )


def _vault(data_dir: Path, backup_dir: str | None, key: bytes | None = None) -> Vault:
    from penstock.storage.vault import Vault

    return Vault(_place(data_dir, backup_dir), key)


def _place(data_dir: Path, backup_dir: str | None) -> str:
    return backup_dir or str(data_dir.expanduser().absolute() / "backup")


def _directories(
    data_dir: Path, state_dir: str | None, checkpoint_dir: str | None
) -> tuple[str, str]:
    state = state_dir or str(data_dir.expanduser().absolute() / "state")
    return state, checkpoint_dir or f"{state}/checkpoints"


@contextmanager
def _progress() -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=messages()
    ) as progress:
        yield progress


def _is_meant(backup: Backup, query: str | None, name: str | None) -> bool:
    """Tell whether a backup is of a query, of this one and of this name if they are given."""
    if "positions" not in backup.facts:
        return False
    return (query is None or backup.facts["query"] == query) and (
        name is None or backup.name == name
    )

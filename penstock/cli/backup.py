"""penstock backup, restore: a whole deployment into a vault and out of it."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from penstock.cli import app
from penstock.cli.backup_key import KEY, UNSIGNED, Key, Unsigned, open_vault, signing_key
from penstock.cli.options import DATA_DIR, DataDir, messages
from penstock.errors import ConfigError, StateError
from penstock.mesh.layout import Layout
from penstock.mesh.process import UMASK

Target = Annotated[
    str,
    typer.Argument(
        help="directory or fsspec URL of the backups; several share what is the same in them"
    ),
]


@app.command("backup")
def backup_command(target: Target, data_dir: DataDir = DATA_DIR) -> None:
    """Back up a whole mesh, running or not: catalog, segments, offsets, state. Its passwords are
    not in it.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from penstock.mesh.deployment import backup
    from penstock.storage.vault import Vault

    os.umask(UMASK)
    layout = Layout(data_dir.expanduser().absolute())
    if target.startswith("/") and layout.root in (
        resolved := Layout(type(layout.root)(target)).root,
        *resolved.parents,
    ):
        raise ConfigError(
            "a backup inside of what it backs up helps nobody", hint="name a directory elsewhere"
        )
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=messages()
    ) as progress:
        task = progress.add_task("files", total=None)

        def advance(_path: str, number: int, count: int) -> None:
            progress.update(task, completed=number, total=count)

        done = backup(layout, Vault(target, signing_key(layout)), time.time_ns() // 10**6, advance)
    size = done.backup.size / 1e6
    print(
        f"{done.backup.name}: {done.backup.facts['files']} files, {size:.1f} MB; the mesh stood"
        f" still for {done.paused * 1000:.0f} ms"
    )


@app.command("restore")
def restore_command(
    target: Target,
    data_dir: DataDir = DATA_DIR,
    name: Annotated[
        str | None, typer.Option("--backup", help="a backup by its name; default: the newest")
    ] = None,
    key: Key = KEY,
    unsigned: Unsigned = UNSIGNED,
) -> None:
    """Restore a whole mesh into an empty data directory; `penstock up` starts it. It gets new
    passwords.
    """
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from penstock.mesh.deployment import SUBJECT, restore
    from penstock.storage.vault import mask_login

    os.umask(UMASK)
    vault = open_vault(target, Layout(data_dir.expanduser().absolute()), key, unsigned=unsigned)
    found = [b for b in vault.backups(SUBJECT) if name in (None, b.name)]
    if not found:
        raise StateError(
            f"no such backup in {mask_login(target)}",
            detail=", ".join(b.name for b in vault.backups(SUBJECT)) or "it holds none",
        )
    with Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=messages()
    ) as progress:
        task = progress.add_task(found[0].name, total=found[0].size)
        restore(
            Layout(data_dir.expanduser().absolute()),
            vault,
            found[0],
            lambda item: progress.advance(task, item.size),
        )
    print(f"{found[0].name}: {found[0].facts['files']} files restored")

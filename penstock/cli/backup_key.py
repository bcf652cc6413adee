"""The key that signs backups, for the commands that make and restore them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.config.secret_files import read_secret
from penstock.errors import ConfigError
from penstock.mesh.layout import Layout

if TYPE_CHECKING:
    from penstock.storage.vault import Vault

#: name of the secret in the data directory
SECRET = "backup"
_VARIABLE = "PENSTOCK_BACKUP_KEY"

Key = Annotated[
    Path | None,
    typer.Option(
        "--key",
        envvar=f"{_VARIABLE}_FILE",
        help="file with the key of the mesh that made the backup: its secrets/backup.password",
    ),
]
Unsigned = Annotated[
    bool,
    typer.Option(
        "--unsigned",
        help="restore what has no signature, or that of another key; only if you know who wrote it",
    ),
]
KEY: Path | None = None
UNSIGNED = False


def signing_key(layout: Layout) -> bytes:
    """The key of the mesh in *layout*; made at first use, unless the environment names one."""
    layout.secrets.mkdir(parents=True, mode=0o700, exist_ok=True)
    given = os.environ.get(_VARIABLE)
    return (
        given
        or read_secret(
            Path(os.environ.get(f"{_VARIABLE}_FILE") or layout.secret(SECRET)), _VARIABLE
        )
    ).encode()


def open_vault(place: str, layout: Layout, key: Path | None, *, unsigned: bool) -> Vault:
    """Open the vault to restore from: with the key in the file *key*, else that of the mesh in
    *layout*.

    Raises:
        ConfigError: there is no key, and *unsigned* does not say that none is needed.
    """
    from penstock.storage.vault import Vault

    own = layout.secrets / f"{SECRET}.password"
    given = os.environ.get(_VARIABLE, "") if key is None else ""
    file = key or (own if own.exists() else None)
    if not given and file is not None:
        given = read_secret(file, _VARIABLE)
    if not given and not unsigned:
        raise ConfigError(
            "no key to check the backup with",
            hint=(
                "--key FILE: secrets/backup.password of the mesh that made it; --unsigned restores"
                " it unchecked"
            ),
        )
    return Vault(place, given.encode() or None, unsigned=unsigned)

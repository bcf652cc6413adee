"""The gateway that a command speaks to, and who it is there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.config.secret_files import read_secret
from penstock.errors import ConfigError
from penstock.mesh.layout import Layout
from penstock.mesh.state import read_state

if TYPE_CHECKING:
    from penstock.client.connection import Connection

Url = Annotated[
    str | None, typer.Option(help="the gateway's address; default: the mesh of the data directory")
]
User = Annotated[str, typer.Option(envvar="PENSTOCK_USER")]
PasswordFile = Annotated[
    Path | None, typer.Option(envvar="PENSTOCK_PASSWORD_FILE", help="file that holds the password")
]


def connection(
    data_dir: Path,
    url: str | None,
    user: str,
    password_file: Path | None,
    *,
    timeout: float = 60.0,
    notifier_url: str | None = None,
) -> Connection:
    """Connect to the mesh in *data_dir*, or to the one at *url*. Raises ConfigError, AuthError,
    RemoteError.
    """
    layout = Layout(data_dir.expanduser().absolute())
    state = mesh_at(layout, url)
    if url is None and state is None:
        raise ConfigError(
            f"no mesh runs in {data_dir.absolute()}",
            hint="`penstock up` starts one; --url names another's gateway",
        )
    if password_file is None and state is None:
        raise ConfigError("which password?", hint="--password-file, or PENSTOCK_PASSWORD_FILE")
    if password_file is not None:
        password = read_secret(password_file, "PENSTOCK_PASSWORD_FILE")
    else:
        password = read_secret(layout.secret("root"), "secrets/root.password")
    if state is not None:
        url = _gateway_of(state)
    from penstock.client.connection import connect
    from penstock.client.connection_options import ConnectionOptions

    # what the services trust, the command trusts
    ca = os.environ.get("PENSTOCK_TLS_CA") or None
    return connect(
        url or "",
        user=user,
        password=password,
        options=ConnectionOptions(timeout=timeout, notifier_url=notifier_url, ca=ca),
    )


def mesh_at(layout: Layout, url: str | None) -> Mapping[str, Any] | None:
    """Return the state of the mesh of *layout* if *url* is its gateway, or None: no other gateway
    is told its password.
    """
    state = read_state(layout)
    if state is None or url is None or url.rstrip("/") == _gateway_of(state):
        return state
    return None


def _gateway_of(state: Mapping[str, Any]) -> str:
    return str(state["settings"]["PENSTOCK_GATEWAY_URL"]).rstrip("/")

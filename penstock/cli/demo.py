"""`penstock demo`: the flights demo on a mesh of its own, or on one that runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import app
from penstock.cli.gateway import PasswordFile, Url, User, connection
from penstock.cli.options import DATA_DIR, DataDir, messages

#: the whole year goes through before a drain ends, on slow machines too
_PATIENT = {"PENSTOCK_GATEWAY_LIVE_TIMEOUT": "300"}


@app.command()
def demo(
    out: Annotated[
        Path | None, typer.Option(help="leave each stream's DDL and final rows in this directory")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="this machine's own metrics instead, until Ctrl-C")
    ] = False,
    url: Url = None,
    notifier_url: Annotated[
        str | None,
        typer.Option(help="with --url: the notifier's address; default: what the gateway says"),
    ] = None,
    user: User = "root",
    password_file: PasswordFile = None,
    data_dir: DataDir = DATA_DIR,
) -> None:
    """Replay 336,776 flights through a mesh, watch windows arrive, and check every one of them.

    The mesh is one of its own that is gone afterwards; with --url it is the one there, which must
    not have a database `flights` yet. For the mesh of the data directory no password is needed.

    Example: penstock demo --out /tmp/flights

    Example: penstock demo --live --url http://127.0.0.1:7700
    """
    from penstock.client.connection import connect
    from penstock.client.connection_options import ConnectionOptions
    from penstock.demo import live as machine
    from penstock.demo import run as flights
    from penstock.mesh.running import running_mesh

    console = messages()
    if url is not None:
        with connection(
            data_dir, url, user, password_file, timeout=330, notifier_url=notifier_url
        ) as client:
            if live:
                machine.run(client, console)
                return
            print(flights.run(client, console, out).line())
        return
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
        console.print("starting a mesh of its own …")
        with (
            running_mesh(Path(directory) / "mesh", environment=_PATIENT) as mesh,
            connect(
                mesh.gateway_url,
                user=mesh.user,
                password=mesh.password,
                options=ConnectionOptions(timeout=330),
            ) as client,
        ):
            if live:
                machine.run(client, console)
                return
            print(flights.run(client, console, out).line())

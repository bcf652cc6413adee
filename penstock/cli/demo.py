"""`penstock demo`: the flights demo on a mesh of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.cli import app
from penstock.client.connection import connect
from penstock.mesh.running import running_mesh

#: the whole year goes through before a drain ends, on slow machines too
_PATIENT = {"PENSTOCK_GATEWAY_LIVE_TIMEOUT": "300"}


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="leave each stream's DDL and final rows in this directory")] = None,
    live: Annotated[bool, typer.Option("--live", help="this machine's own metrics instead, until Ctrl-C")] = False,
) -> None:
    """Replay 336,776 flights through a mesh, watch windows arrive, and check every one of them.

    Example: penstock demo --out /tmp/flights
    """
    from penstock.demo import live as machine
    from penstock.demo import run as flights

    console = Console(stderr=True, highlight=False)
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as directory:
        console.print("starting a mesh of its own …")
        with (
            running_mesh(Path(directory) / "mesh", environment=_PATIENT) as mesh,
            connect(mesh.gateway_url, user=mesh.user, password=mesh.password, timeout=330) as client,
        ):
            if live:
                machine.run(client, console)
                return
            print(flights.run(client, console, out).line())

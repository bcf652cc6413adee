"""`penstock doctor`: says what is wrong and what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.cli import app
from penstock.cli.options import DATA_DIR, DataDir
from penstock.mesh.layout import Layout


@app.command(name="doctor")
def examine(
    data_dir: DataDir = DATA_DIR,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="leave out what is in order")
    ] = False,
) -> None:
    """Say what is wrong with the mesh and what to do; exit status 1 when something has to be
    done.
    """
    from penstock.cli import diagnosis

    in_order = diagnosis.examine(Layout(data_dir.expanduser().absolute()), quiet=quiet)
    raise typer.Exit(0 if in_order else 1)

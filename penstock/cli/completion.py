"""penstock completion: the script that makes a shell complete commands, options and tables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer._completion_shared import get_completion_script

from penstock.cli import app
from penstock.cli.options import DATA_DIR

if TYPE_CHECKING:
    from penstock.cli.prompt.names import Names


@app.command()
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="bash, zsh or fish")],
) -> None:
    """Print the script that makes a shell complete what is typed after `penstock`.

    Names of tables are completed where the mesh of the data directory answers.

    Example: source <(penstock completion bash)
    """
    variable = "_PENSTOCK_COMPLETE"
    print(get_completion_script(prog_name="penstock", complete_var=variable, shell=shell))


def complete_table(incomplete: str) -> list[str]:
    """Return names of tables that begin with *incomplete*: databases first, then `database.table`
    of the one that is typed. Nothing while no mesh answers.
    """
    # a Tab in another place needs none of this
    from penstock.cli.gateway import connection
    from penstock.cli.prompt.names import Names
    from penstock.errors import PenstockError

    data_dir = Path(os.environ.get("PENSTOCK_DATA_DIR") or DATA_DIR)
    try:
        with connection(data_dir, None, "root", None, timeout=3.0) as client:
            names = Names(lambda sql, parameters: client.query(sql, parameters).rows)
            return matching_tables(names, incomplete)
    except PenstockError:
        return []


def matching_tables(names: Names, incomplete: str) -> list[str]:
    """Return what *incomplete* may become."""
    database, dot, _ = incomplete.partition(".")
    if dot:
        found = [f"{database}.{table}" for table in names.tables(database)]
    else:
        found = [f"{name}." for name in names.databases()]
    return [name for name in found if name.startswith(incomplete)]

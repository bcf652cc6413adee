"""Options that several commands have, and where they write what is no answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console

DataDir = Annotated[
    Path,
    typer.Option("--data-dir", envvar="PENSTOCK_DATA_DIR", help="where the mesh keeps everything"),
]
DATA_DIR = Path(".penstock")
#: how rows are written
Form = Literal["table", "vertical", "csv", "json", "ndjson", "markdown", "parquet"]
#: … where they come one after the other
FollowForm = Literal["table", "csv", "json", "ndjson"]


def messages() -> Console:
    """Return the console for what is said beside the answer: standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)

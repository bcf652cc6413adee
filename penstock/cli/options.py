"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataDir = Annotated[
    Path,
    typer.Option("--data-dir", envvar="PENSTOCK_DATA_DIR", help="where the mesh keeps everything"),
]
DATA_DIR = Path(".penstock")

"""penstock top: what services and streams are doing."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from penstock.cli import app
from penstock.cli.options import DATA_DIR, DataDir

#: what a pipe gets is not cut
_LEAST_WIDTH = 120


@app.command()
def top(
    seconds: Annotated[
        float, typer.Option("--seconds", "-s", min=0.5, help="from one look to the next")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="print two looks' difference, and end")] = (
        False
    ),
    data_dir: DataDir = DATA_DIR,
) -> None:
    """Show CPU, memory and rows a second of each service, and rates and lag of each stream.

    On a terminal until Ctrl-C; through a pipe once. CPU: 100 % is one core.

    Example: penstock top --seconds 5
    """
    from rich.console import Console
    from rich.live import Live

    from penstock.cli.observer import Observer

    observer = Observer(data_dir)
    try:
        before = observer.look()
        if once or not sys.stdout.isatty():
            time.sleep(seconds)
            console = Console(highlight=False)
            width = max(console.width, _LEAST_WIDTH)
            Console(highlight=False, width=width).print(observer.tables(before, observer.look()))
            return
        console = Console(highlight=False)
        with Live(console=console, auto_refresh=False, screen=True) as live:
            live.update("looking …", refresh=True)
            while True:
                time.sleep(seconds)
                after = observer.look()
                live.update(observer.tables(before, after), refresh=True)
                before = after
    except KeyboardInterrupt:
        pass
    finally:
        observer.close()

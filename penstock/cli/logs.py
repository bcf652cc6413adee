"""penstock logs: what the services say, all of them in the order of time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import islice, takewhile
from pathlib import Path
from typing import Annotated, Literal

import typer

from penstock.cli import app
from penstock.cli.log_entries import entries_of, newest_first, readable
from penstock.cli.options import DATA_DIR, DataDir
from penstock.errors import ConfigError
from penstock.mesh.layout import Layout
from penstock.runtime.log_entries import LEVELS, LogEntry, LogFilter, moment_of

#: entries that are shown when nothing says how many
_SHOWN = 50
_PAUSE_SECONDS = 0.3
_COLORS = {"debug": "2", "warning": "33", "error": "31", "critical": "1;31"}
#: its lines are in the services' own logs, too
_REPEATED = "audit"


@app.command()
def logs(
    services: Annotated[
        list[str] | None,
        typer.Argument(help="gateway, spark, store, kafka, supervisor, …; default: all"),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="10m, 2h, 1d, or a time: 2026-03-01T09:00 (UTC unless it has a zone)"),
    ] = None,
    level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"],
        typer.Option(help="this level and worse"),
    ] = "debug",
    lines: Annotated[
        int | None,
        typer.Option("--lines", "-n", min=0, help="the last so many; with --since: all"),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on as they grow")] = False,
    trace: Annotated[
        str, typer.Option(help="only what is about rows written under this trace id")
    ] = "",
    raw: Annotated[bool, typer.Option("--raw", help="lines as they are in the files")] = False,
    data_dir: DataDir = DATA_DIR,
) -> None:
    """Show what the services have logged, in the order of time.

    Example: penstock logs gateway store --since 10m --level warning
    """
    layout = Layout(data_dir.expanduser().absolute())
    chosen = services or []
    paths = _paths(layout, chosen)
    moment = _moment(since, datetime.now(UTC)) if since is not None else None
    wanted = LogFilter(moment, LEVELS.index(level), trace)
    most = _SHOWN if lines is None and wanted.is_open else lines
    show = _printer(raw=raw)
    sizes = {path: path.stat().st_size for path in paths if path.exists()}
    for entry in last_entries(paths, wanted, most):
        show(entry)
    sys.stdout.flush()
    if follow:
        try:
            _follow(layout, chosen, sizes, wanted, show)
        except KeyboardInterrupt:
            pass


def last_entries(paths: Sequence[Path], wanted: LogFilter, most: int | None) -> list[LogEntry]:
    """Return entries of all logs, also of files that were put aside, in the order of time.

    Args:
        most: the last so many; None for all.
    """
    found: list[LogEntry] = []
    for path in paths:
        files = (path, *(path.with_name(f"{path.name}.{n}") for n in (1, 2)))
        recent = takewhile(wanted.is_recent, newest_first(files, path.stem))
        found += islice(filter(wanted.has, recent), most)
    # entries of one moment stay in the order of their log
    found.reverse()
    found.sort(key=lambda entry: entry.time)
    return found if most is None else found[len(found) - min(most, len(found)) :]


def _paths(layout: Layout, services: Sequence[str]) -> list[Path]:
    """Return the logs of *services*, or all. Raises ConfigError: there is none of one."""
    if not services:
        there = sorted(layout.logs.glob("*.log"))
        if not there:
            raise ConfigError(f"no logs in {layout.logs}", hint="--data-dir says of which mesh")
        return [path for path in there if path.stem != _REPEATED]
    for service in services:
        if not layout.log(service).exists():
            known = ", ".join(path.stem for path in sorted(layout.logs.glob("*.log")))
            raise ConfigError(
                f"no log of {service}",
                detail=str(layout.log(service)),
                hint=f"there are {known}" if known else "--data-dir says of which mesh",
            )
    return [layout.log(service) for service in services]


def _moment(given: str, now: datetime) -> datetime:
    """Return the moment that `--since` says. Raises ConfigError."""
    try:
        return moment_of(given, now)
    except ValueError:
        raise ConfigError(f"{given} is no time", hint="10m, 2h, 1d, or 2026-03-01T09:00") from None


def _printer(*, raw: bool) -> Callable[[LogEntry], None]:
    colored = sys.stdout.isatty() and not raw and "NO_COLOR" not in os.environ

    def show(entry: LogEntry) -> None:
        text = "\n".join(entry.lines) if raw else readable(entry)
        color = _COLORS.get(entry.level) if colored else None
        print(f"\x1b[{color}m{text}\x1b[0m" if color else text)

    return show


def _follow(
    layout: Layout,
    services: Sequence[str],
    sizes: dict[Path, int],
    wanted: LogFilter,
    show: Callable[[LogEntry], None],
) -> None:
    """Show what is added, until interrupted; also in logs that are made meanwhile."""
    while True:
        time.sleep(_PAUSE_SECONDS)
        found: list[LogEntry] = []
        for path in _paths(layout, services):
            text, sizes[path] = _new_text(path, sizes.get(path, 0))
            found += entries_of((line for line in text.splitlines() if line), path.stem)
        for entry in sorted(found, key=lambda e: e.time):
            if wanted.has(entry):
                show(entry)
        sys.stdout.flush()


def _new_text(path: Path, start: int) -> tuple[str, int]:
    """Return the whole lines of a log behind *start*, and where they end. A log that was put aside
    begins anew.
    """
    with open(path, "rb") as file:
        if path.stat().st_size < start:
            start = 0
        file.seek(start)
        data = file.read()
    end = data.rfind(b"\n") + 1
    return data[:end].decode(errors="replace"), start + end

"""The rows of a file, checked and written, with what is shown on the way."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from penstock.cli.importing.convert import Converter
from penstock.cli.importing.found_types import word_of
from penstock.cli.importing.pieces import RowFile
from penstock.cli.importing.survey import Survey, open_source, survey
from penstock.cli.importing.target import Choices, Target, find_target
from penstock.cli.importing.write import Import
from penstock.cli.options import messages
from penstock.cli.table_name import TableName
from penstock.client.connection import Connection
from penstock.errors import ConfigError


class _Speed(ProgressColumn):
    """Rows a second, of late."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} rows/s" if task.speed else "")


def import_rows(
    file: Path,
    name: TableName,
    choices: Choices,
    open_client: Callable[[], Connection],
    *,
    delimiter: str,
    cut_times: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Write the rows of *file* into the table called *name*.

    Args:
        file: CSV, NDJSON or Parquet.
        name: of the table, which is made if there is none.
        choices: of a new table.
        open_client: connects to the gateway.
        delimiter: between the fields of CSV.
        cut_times: leave out digits that times have too many.
        dry_run: write nothing.
        yes: make the table without asking.

    Raises:
        PenstockError: the file or a value of it cannot be used, with its line.
    """
    try:
        source = open_source(file, _delimiter(delimiter))
        found = _survey(source)
        with open_client() as client:
            target = find_target(client, name, found, choices)
            _show(name, found, target)
            converter = Converter(source, target.uses, cut_times)
            if dry_run:
                _check(converter, found)
                return
            if target.create is not None:
                _require_consent(target.create, yes=yes)
                client.execute(target.create)
            _write(Import(client, name, converter, found.digest), found)
    except OSError as wrong:
        raise ConfigError(f"{file} cannot be read", detail=str(wrong)) from None


def _delimiter(given: str) -> str:
    known = {"\\t": "\t", "tab": "\t"}.get(given, given)
    if len(known) != 1 or known in '"\r\n':
        raise ConfigError(f"{given!r} does not separate fields", hint="one character, or tab")
    return known


def _survey(source: RowFile) -> Survey:
    size = source.path.stat().st_size
    with Progress(
        TextColumn("reading"), BarColumn(), DownloadColumn(), console=messages(), transient=True
    ) as progress:
        task = progress.add_task("reading", total=size)
        return survey(source, lambda done: progress.update(task, completed=done))


def _show(name: TableName, found: Survey, target: Target) -> None:
    """Show which types were found and what becomes of each column."""
    shown = Table(box=None, pad_edge=False)
    for heading in ("column", "found", f"in {name}"):
        shown.add_column(heading, overflow="fold")
    uses: dict[str, list[str]] = {}
    for use in target.uses:
        uses.setdefault(use.source, []).append(f"{use.target} {word_of(use.type)}")
    for column in found.columns:
        what = "no value" if column.empty else str(column.type)
        becomes = ", ".join(uses.get(column.name, ["-"]))
        shown.add_row(Text(column.name), what, Text(becomes))
    messages().print(shown)
    messages().print(_rows(found.rows), markup=False)


def _require_consent(create: str, *, yes: bool) -> None:
    """Ask whether to make the table. Raises ConfigError where nobody can be asked."""
    messages().print(f"there is no such table yet: {create}", markup=False, soft_wrap=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("nobody is here to ask", hint="--yes makes the table without asking")
    if not typer.confirm("make it?", err=True):
        raise typer.Exit(1)


def _check(converter: Converter, found: Survey) -> None:
    for piece in converter.file.pieces(lambda _: None):
        converter.table(piece)
    print(f"{_rows(found.rows)} fit; nothing was written")


def _write(work: Import, found: Survey) -> None:
    began = time.monotonic()
    with Progress(
        TextColumn("writing"),
        BarColumn(),
        MofNCompleteColumn(),
        _Speed(),
        TimeRemainingColumn(),
        console=messages(),
        transient=True,
    ) as progress:
        task = progress.add_task("writing", total=found.rows)
        notices = work.run(lambda rows: progress.advance(task, rows))
    seconds = max(time.monotonic() - began, 0.001)
    for notice in notices:
        messages().print(notice, markup=False)
    print(
        f"{_rows(found.rows)} in {work.name} after {seconds:.1f} s"
        f" ({found.rows / seconds:,.0f} rows/s)"
    )


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"

"""Rows that come piece by piece, written as one table, one CSV, one JSON array or lines of JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

import pyarrow as pa
from rich.cells import cell_len

from penstock.cli.options import FollowForm
from penstock.cli.output import cell_texts, is_number, objects, pad, write_csv


class PiecePrinter:
    """Writes pieces of rows, each at once; `close` ends what has to have an end."""

    def __init__(self, form: FollowForm, out: TextIO) -> None:
        self._form = form
        self._out = out
        self._widths: list[int] = []
        self._head: list[str] = []
        self._any = False

    def write(self, rows: pa.Table) -> None:
        """Write *rows*. Other columns than those before begin a new head."""
        if rows.num_rows == 0:
            return
        if self._form == "table":
            self._write_aligned(rows)
        elif self._form == "csv":
            self._write_csv(rows)
        else:
            self.write_objects(objects(rows))
        self._out.flush()

    def write_objects(self, lines: Iterable[str]) -> None:
        """Write what is JSON already: lines, or items of the one array."""
        if self._form == "ndjson":
            text = "".join(f"{line}\n" for line in lines)
        else:
            text = (",\n  " if self._any else "[\n  ") + ",\n  ".join(lines)
        # Ctrl-C may come at any moment: what is written in one piece is whole
        self._any = True
        self._out.write(text)
        self._out.flush()

    def close(self) -> None:
        if self._form == "json":
            self._out.write("\n]\n" if self._any else "[]\n")
            self._out.flush()

    def _write_aligned(self, rows: pa.Table) -> None:
        """Align with the rows before; a wider value makes its column wider from there on."""
        names, columns = cell_texts(rows)
        fresh = names != self._head
        before = [cell_len(name) for name in names] if fresh else self._widths
        self._widths = [
            max(width, *map(cell_len, column))
            for width, column in zip(before, columns, strict=True)
        ]
        right = [is_number(kind) for kind in rows.schema.types]
        if fresh:
            self._head = names
            self._write_line(names, right)
            self._out.write("  ".join("-" * width for width in self._widths) + "\n")
        for row in zip(*columns, strict=True):
            self._write_line(list(row), right)

    def _write_line(self, cells: list[str], right: list[bool]) -> None:
        padded = [pad(c, w, r) for c, w, r in zip(cells, self._widths, right, strict=True)]
        self._out.write("  ".join(padded).rstrip() + "\n")

    def _write_csv(self, rows: pa.Table) -> None:
        fresh = rows.column_names != self._head
        self._head = rows.column_names
        write_csv(rows, self._out, head=fresh)

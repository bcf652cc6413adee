"""CSV: a line of names, then rows. An empty field is NULL."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, Protocol

from penstock.cli.importing.lines import MAX_LINE_BYTES, read_lines
from penstock.cli.importing.pieces import PIECE_BYTES, PIECE_ROWS, FilePiece, fault
from penstock.errors import SchemaError


class _Reader(Protocol):
    """What `csv.reader` makes."""

    @property
    def line_num(self) -> int: ...

    def __next__(self) -> list[str]: ...


class CsvFile:
    """A file as RFC 4180 has it; a quoted field may go over several lines."""

    unit: Literal["line", "row"] = "line"
    textual = True

    def __init__(self, path: Path, delimiter: str = ",") -> None:
        self.path = path
        self._delimiter = delimiter

    def pieces(self, read: Callable[[int], None]) -> Iterator[FilePiece]:
        """See `RowFile`.

        Raises:
            SchemaError: the file is no CSV; it says which line.
        """
        csv.field_size_limit(MAX_LINE_BYTES)
        text = (line for _, line in read_lines(self.path, read))
        rows = csv.reader(text, delimiter=self._delimiter, strict=True)
        names = self._names(rows)
        places: list[int] = []
        held: list[list[str]] = []
        size = 0
        for place, row in self._rows(rows, len(names)):
            places.append(place)
            held.append(row)
            size += sum(map(len, row))
            if len(held) >= PIECE_ROWS or size >= PIECE_BYTES:
                yield _piece(names, places, held)
                places, held, size = [], [], 0
        if held:
            yield _piece(names, places, held)

    def _names(self, rows: _Reader) -> list[str]:
        try:
            names = [name.strip() for name in next(rows)]
        except StopIteration:
            raise SchemaError(
                f"{self.path.name} is empty", code="E_ROW", hint="the first line has the names"
            ) from None
        except csv.Error as wrong:
            raise fault(self.path, "line", 1, str(wrong)) from None
        self._check_names(names)
        self._check_delimiter(names)
        return names

    def _check_names(self, names: list[str]) -> None:
        """Raise SchemaError: a column has no name, or that of another one."""
        if "" in names:
            raise fault(self.path, "line", 1, f"column {names.index('') + 1} has no name")
        lower = [name.lower() for name in names]
        twice = [name for name in names if lower.count(name.lower()) > 1]
        if twice:
            raise fault(self.path, "line", 1, f"two columns are called {twice[0]}")

    def _check_delimiter(self, names: list[str]) -> None:
        """Raise SchemaError: the only name has in it what may stand between columns."""
        other = next((d for d in (";", "\t", "|") if len(names) == 1 and d in names[0]), None)
        if other is not None:
            raise fault(
                self.path,
                "line",
                1,
                "there is one column only",
                f"are they separated by {other!r}? Then --delimiter {other!r}",
            )

    def _rows(self, rows: _Reader, width: int) -> Iterator[tuple[int, list[str]]]:
        while True:
            place = rows.line_num + 1
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as wrong:
                raise fault(
                    self.path, "line", place, str(wrong), "a quote that is never closed?"
                ) from None
            if not row:
                continue
            if len(row) != width:
                hint = "a field with the delimiter in it has to be in double quotes"
                what = f"it has {len(row)} fields, and there are {width} names"
                raise fault(self.path, "line", place, what, hint)
            yield place, row


def _piece(names: list[str], places: list[int], rows: list[list[str]]) -> FilePiece:
    columns = [[value or None for value in column] for column in zip(*rows, strict=True)]
    return FilePiece(places, dict(zip(names, columns, strict=True)))

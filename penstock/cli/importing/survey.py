"""The first reading of a file: how many rows it has, which columns, and what they hold. It finds
what is wrong with the file before anything is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.cli.importing.csv_file import CsvFile
from penstock.cli.importing.found_types import TypeFinder
from penstock.cli.importing.ndjson_file import NdjsonFile
from penstock.cli.importing.pieces import RowFile
from penstock.errors import ConfigError, SchemaError
from penstock.types import ColumnType

_HASHED_AT_ONCE = 4 << 20


@dataclass(frozen=True)
class FoundColumn:
    """A column of the file; `empty` when it has no value at all."""

    name: str
    type: ColumnType
    empty: bool


@dataclass(frozen=True)
class Survey:
    """`digest` is that of the file's bytes."""

    rows: int
    columns: tuple[FoundColumn, ...]
    digest: str


def open_source(path: Path, delimiter: str) -> RowFile:
    """Return the reader of a file, by the end of its name. Raises ConfigError."""
    kind = path.suffix.lower()
    if kind in (".csv", ".tsv"):
        return CsvFile(path, "\t" if kind == ".tsv" and delimiter == "," else delimiter)
    if kind in (".ndjson", ".jsonl"):
        return NdjsonFile(path)
    if kind in (".parquet", ".pq"):
        from penstock.cli.importing.parquet_file import ParquetFile

        return ParquetFile(path)
    raise ConfigError(
        f"what is in {path.name}?", hint="names end in .csv, .tsv, .ndjson, .jsonl or .parquet"
    )


def survey(source: RowFile, read: Callable[[int], None]) -> Survey:
    """Read the whole file; *read* is told the bytes read so far.

    Raises:
        SchemaError: it is empty, or what it should be by its name it is not.
        OSError: it cannot be read.
    """
    finders: dict[str, TypeFinder] = {}
    rows = 0
    for piece in source.pieces(read):
        rows += len(piece.places)
        for name, values in piece.columns.items():
            if name not in finders:
                finders[name] = TypeFinder(name, textual=source.textual)
            finders[name].see(values)
    if not rows:
        raise SchemaError(f"{source.path.name} has no rows", code="E_ROW")
    columns = tuple(FoundColumn(f.name, f.column_type(), not f.any) for f in finders.values())
    return Survey(rows, columns, _digest(source.path))


def _digest(path: Path) -> str:
    found = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while data := file.read(_HASHED_AT_ONCE):
            found.update(data)
    return found.hexdigest()

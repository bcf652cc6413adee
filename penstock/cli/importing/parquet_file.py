"""Parquet: columns that know their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.cli.importing.pieces import PIECE_BYTES, PIECE_ROWS, FilePiece
from penstock.errors import SchemaError


class ParquetFile:
    """A Parquet file; the place of a row is its number, from 1."""

    unit: Literal["line", "row"] = "row"
    textual = False

    def __init__(self, path: Path) -> None:
        self.path = path

    def pieces(self, read: Callable[[int], None]) -> Iterator[FilePiece]:
        """See `RowFile`; what is read is counted in the shares of row groups that are done.

        Raises:
            SchemaError: the file is damaged, or no Parquet.
        """
        size = self.path.stat().st_size
        number = 0
        try:
            with pq.ParquetFile(self.path) as file:
                for batch in file.iter_batches(batch_size=PIECE_ROWS):
                    for part in _parts(pa.Table.from_batches([batch])):
                        places = range(number + 1, number + part.num_rows + 1)
                        number += part.num_rows
                        columns = dict(zip(part.column_names, part.columns, strict=True))
                        yield FilePiece(places, columns)
                    read(size * number // file.metadata.num_rows)
        except (pa.ArrowException, OSError) as wrong:
            raise SchemaError(
                f"{self.path.name} cannot be read as Parquet",
                code="E_ROW",
                detail=str(wrong)[:200],
            ) from None
        read(size)


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    """Cut rows so that each part is about small enough to be sent at once."""
    count = max(1, -(-rows.nbytes // PIECE_BYTES))
    step = max(1, -(-rows.num_rows // count))
    for start in range(0, rows.num_rows, step):
        yield rows.slice(start, step)

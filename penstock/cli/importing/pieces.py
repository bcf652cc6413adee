"""Some rows of a file at a time, as columns, and where in the file each of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from penstock.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

#: rows of one piece, which is written as a whole; fewer when they are long
PIECE_ROWS = 10_000
#: bytes of text after which a piece ends; the gateway takes requests of 16 MiB
PIECE_BYTES = 4 << 20


@dataclass(frozen=True)
class FilePiece:
    """Rows: `places` has the line (or the row's number) of each. A value of CSV is text or None,
    one of NDJSON what JSON has; columns of Parquet are Arrow's.
    """

    places: Sequence[int]
    columns: Mapping[str, list[Any] | pa.ChunkedArray]


class RowFile(Protocol):
    """A file of rows, which can be read several times."""

    path: Path
    #: what a place is
    unit: Literal["line", "row"]
    #: values are text that has to be read as numbers, truth values and times
    textual: bool

    def pieces(self, read: Callable[[int], None]) -> Iterator[FilePiece]:
        """Yield all rows, in the same pieces each time; *read* is told the bytes read so far."""
        ...


def fault(path: Path, unit: str, place: int, what: str, hint: str = "") -> SchemaError:
    """Return the error of one place in a file."""
    return SchemaError(f"{path.name}, {unit} {place}: {what}", code="E_ROW", hint=hint)


def excerpt(value: object, most: int = 60) -> str:
    """Return *value* so that it fits into a message and cannot move a cursor."""
    text = ascii(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[:most] + "…"

"""Rows of a file on their way into a table: piece by piece, in the order of the file, while the
next piece is made ready.

Each piece has an idempotency key out of the file's digest, the table and the piece's number: an
import that is run again within a day writes what is there already no second time. Later, rows of
the same table and time replace themselves.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.cli.importing.convert import Converter
from penstock.cli.importing.pieces import FilePiece
from penstock.cli.table_name import TableName
from penstock.errors import PenstockError, SchemaError

if TYPE_CHECKING:
    from penstock.client.connection import Connection

_ROW = re.compile(r"\Arow (\d+)(, |: )")


@dataclass(frozen=True)
class Import:
    """One file into one table; `digest` is the file's."""

    client: Connection
    name: TableName
    converter: Converter
    digest: str

    def run(self, written: Callable[[int], None]) -> list[str]:
        """Write all rows and return what the gateway has to say; *written* is told of each piece.

        Raises:
            SchemaError: a row does not fit; it names the line, and how many rows are written.
            PenstockError: the gateway does not take rows.
        """
        notices: dict[str, None] = {}
        done = 0
        try:
            for rows, said in self._answers():
                done += rows
                notices |= dict.fromkeys(said)
                written(rows)
        except PenstockError as error:
            raise _with_count(error, done) from error
        return list(notices)

    def _answers(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Yield number of rows and notices of each piece, in order; one piece is under way."""
        with ThreadPoolExecutor(1, thread_name_prefix="penstock-import") as sender:
            waiting: Future[tuple[int, tuple[str, ...]]] | None = None
            for number, piece in enumerate(self.converter.file.pieces(lambda _: None)):
                try:
                    rows = self.converter.table(piece)
                finally:  # what was sent before it counts, also when these rows do not fit
                    if waiting is not None:
                        yield waiting.result()
                        waiting = None
                waiting = sender.submit(self._send, rows, piece, number)
            if waiting is not None:
                yield waiting.result()

    def _send(self, rows: pa.Table, piece: FilePiece, number: int) -> tuple[int, tuple[str, ...]]:
        key = self.key(number, rows)
        try:
            count = self.client.write(str(self.name), rows, idempotency_key=key)
        except PenstockError as error:
            raise self._with_place(error, piece) from error
        return int(count), count.notices

    def key(self, number: int, rows: pa.Table) -> str:
        """Return the idempotency key of a piece; other columns or types make it another."""
        about = f"{self.client.url}\n{str(self.name).lower()}\n{rows.schema}\n{self.digest}"
        return f"import-{hashlib.blake2b(about.encode(), digest_size=16).hexdigest()}-{number}"

    def _with_place(self, error: PenstockError, piece: FilePiece) -> PenstockError:
        """Return *error* with the place in the file instead of the row's number in the piece."""
        file = self.converter.file
        found = _ROW.match(error.message)
        if found is None or int(found[1]) >= len(piece.places):
            return error
        place = piece.places[int(found[1])]
        message = f"{file.path.name}, {file.unit} {place}: {error.message[found.end() :]}"
        return type(error)(message, code=error.code, detail=error.detail, hint=error.hint)


def _with_count(error: PenstockError, done: int) -> PenstockError:
    if not done:
        return error
    again = "the same command goes on there" if not isinstance(error, SchemaError) else ""
    hint = "; ".join(part for part in (error.hint, again) if part)
    return type(error)(
        f"{error.message} ({done:,} rows before it are written)",
        code=error.code,
        detail=error.detail,
        hint=hint,
    )

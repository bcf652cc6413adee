"""NDJSON: an object on each line. A key that is left out is NULL."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NoReturn

from penstock.cli.importing.lines import read_lines
from penstock.cli.importing.pieces import PIECE_BYTES, PIECE_ROWS, FilePiece, excerpt, fault


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


#: NaN and Infinity are not JSON, though Python's reader takes them
_DECODER = json.JSONDecoder(parse_constant=_no_constant)


class NdjsonFile:
    """A file with an object on each line; empty lines do not count."""

    unit: Literal["line", "row"] = "line"
    textual = False

    def __init__(self, path: Path) -> None:
        self.path = path

    def pieces(self, read: Callable[[int], None]) -> Iterator[FilePiece]:
        """See `RowFile`.

        Raises:
            SchemaError: a line is no object; it says which.
        """
        places: list[int] = []
        held: list[dict[str, Any]] = []
        size = 0
        for place, line in read_lines(self.path, read):
            if not line.strip():
                continue
            places.append(place)
            held.append(self._object(place, line))
            size += len(line)
            if len(held) >= PIECE_ROWS or size >= PIECE_BYTES:
                yield _piece(places, held)
                places, held, size = [], [], 0
        if held:
            yield _piece(places, held)

    def _object(self, place: int, line: str) -> dict[str, Any]:
        try:
            found = _DECODER.decode(line.strip())
            # half of a pair of surrogates is no character; only an escape can spell one
            line.encode() if "\\u" not in line else json.dumps(found, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as wrong:
            raise fault(self.path, "line", place, f"it is not JSON: {wrong!s:.100}") from None
        if not isinstance(found, dict):
            hint = '{"ts": …, "value": …} on each line, without brackets around all'
            raise fault(self.path, "line", place, f"{excerpt(line)} is no object", hint)
        if "" in found:
            raise fault(self.path, "line", place, "a key is empty")
        return found


def _piece(places: list[int], rows: list[dict[str, Any]]) -> FilePiece:
    names = dict.fromkeys(key for row in rows for key in row)
    return FilePiece(places, {name: [row.get(name) for row in rows] for name in names})

"""Lines of a text file, with what is no text told by its line: another encoding, NULs, lines
without an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.cli.importing.pieces import fault
from penstock.errors import SchemaError

#: a row may have 900,000 bytes
MAX_LINE_BYTES = 1 << 20
_BOM = b"\xef\xbb\xbf"
#: what files begin with that are no UTF-8, what they are, and what to do
_NO_TEXT = (
    (b"\x1f\x8b", "it is compressed by gzip", "gunzip it first"),
    (b"PK\x03\x04", "it is a zip file, or one of a spreadsheet", "save it as CSV"),
    (b"PAR1", "it is a Parquet file", "call it .parquet"),
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd", "unzstd it first"),
    (b"\xff\xfe", "it is UTF-16", "iconv -f UTF-16 -t UTF-8 makes it UTF-8"),
    (b"\xfe\xff", "it is UTF-16", "iconv -f UTF-16 -t UTF-8 makes it UTF-8"),
)


def read_lines(path: Path, read: Callable[[int], None]) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line, with its line end; *read* is told the bytes so far.

    Raises:
        SchemaError: the file is no text in UTF-8, or a line is too long.
        OSError: it cannot be read.
    """
    done = 0
    with open(path, "rb") as file:
        _require_text(path, file.read(4))
        file.seek(0)
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise fault(
                    path,
                    "line",
                    number,
                    f"it has more than {MAX_LINE_BYTES:,} bytes",
                    "is it a text file with a row on each line?",
                )
            done += len(line)
            yield number, _decode(path, number, line.removeprefix(_BOM) if number == 1 else line)
            if number % 1000 == 0:
                read(done)
    read(done)


def _require_text(path: Path, head: bytes) -> None:
    for begins, what, hint in _NO_TEXT:
        if head.startswith(begins):
            raise SchemaError(f"{path.name} is no text: {what}", code="E_ROW", hint=hint)


def _decode(path: Path, number: int, line: bytes) -> str:
    if b"\0" in line:
        raise fault(path, "line", number, "it has a NUL byte", "is it a text file?")
    try:
        return line.decode()
    except UnicodeDecodeError as wrong:
        raise fault(
            path,
            "line",
            number,
            f"byte {wrong.start + 1} (0x{line[wrong.start]:02x}) is not UTF-8",
            "if it is Latin-1: iconv -f LATIN1 -t UTF-8 makes it UTF-8",
        ) from None

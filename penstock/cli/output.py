"""Rows of an answer as text or Parquet: what `penstock sql` writes.

A value is written the same way in every text form: times as `2026-01-01 00:00:00.000Z` with the
digits of their precision, bytes as hex, numbers with all their digits.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import pyarrow as pa
from rich.cells import cell_len

from penstock.cli.options import Form
from penstock.errors import ConfigError

_NULL = "NULL"
#: what would break a line or move the cursor of a terminal
_CONTROLS = {code: rf"\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROLS |= {ord("\n"): r"\n", ord("\r"): r"\r", ord("\t"): r"\t"}


def write(table: pa.Table, form: Form, out: TextIO) -> None:
    """Write all rows of *table* to *out*; nothing is cut.

    Raises:
        ConfigError: Parquet for a terminal.
    """
    if form == "parquet":
        _write_parquet(table, out)
        return
    if table.num_columns:  # a statement that gives no rows has none
        _TEXTS[form](table, out)


def text_of(column: pa.ChunkedArray) -> list[str | None]:
    """Return the values of a column as text; None for NULL."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        # Arrow has the digits of the precision, which Python's datetime has not
        return list(column.cast(pa.string()).to_pylist())
    return [None if value is None else _plain_text(value) for value in column.to_pylist()]


def _plain_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _write_parquet(table: pa.Table, out: TextIO) -> None:
    import pyarrow.parquet as pq

    if out.isatty():
        raise ConfigError(
            "Parquet is not for a terminal", hint="write it to a file: > rows.parquet"
        )
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    out.flush()
    out.buffer.write(sink.getvalue())


# ---------------------------------------------------------------- for people


def cell_texts(table: pa.Table) -> tuple[list[str], list[list[str]]]:
    """Return names and columns of text in which nothing breaks a line."""
    columns = [
        [_NULL if text is None else text.translate(_CONTROLS) for text in text_of(column)]
        for column in table.columns
    ]
    return [name.translate(_CONTROLS) for name in table.column_names], columns


def is_number(kind: pa.DataType) -> bool:
    """Tell whether values of *kind* stand to the right."""
    named = pa.types
    return bool(named.is_integer(kind) or named.is_floating(kind) or named.is_decimal(kind))


def pad(text: str, width: int, right: bool) -> str:
    """Fill *text* to *width* cells of a terminal; *right* puts it to the right."""
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def _lines(table: pa.Table, least: int = 0) -> tuple[list[tuple[str, ...]], list[int]]:
    """Return head and rows, each cell padded to its column's width, and the widths, which are at
    least *least*; numbers stand to the right.
    """
    names, columns = cell_texts(table)
    padded = []
    widths = []
    for field, name, column in zip(table.schema, names, columns, strict=True):
        width = max(least, cell_len(name), *map(cell_len, column), 0)
        right = is_number(field.type)
        padded.append([pad(text, width, right) for text in (name, *column)])
        widths.append(width)
    return list(zip(*padded, strict=True)), widths


def _write_table(table: pa.Table, out: TextIO) -> None:
    (head, *rows), widths = _lines(table)
    rule = ["-" * width for width in widths]
    for line in (head, rule, *rows):
        out.write("  ".join(line).rstrip() + "\n")


def _write_markdown(table: pa.Table, out: TextIO) -> None:
    (head, *rows), widths = _lines(table, least=3)
    rules = [
        "-" * (width - 1) + ":" if is_number(field.type) else "-" * width
        for width, field in zip(widths, table.schema, strict=True)
    ]
    for line in (head, rules, *rows):
        out.write("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n")


def _write_vertical(table: pa.Table, out: TextIO) -> None:
    names, columns = cell_texts(table)
    width = max(map(cell_len, names), default=0)
    for number, row in enumerate(zip(*columns, strict=True), start=1):
        out.write(f"--- row {number} ---\n")
        for name, value in zip(names, row, strict=True):
            out.write(f"{pad(name, width, False)}  {value}".rstrip() + "\n")


# ---------------------------------------------------------------- for programs


def write_csv(table: pa.Table, out: TextIO, *, head: bool = True) -> None:
    """Write RFC 4180, with a line of names if *head*; NULL is an empty field."""
    lines = csv.writer(out, lineterminator="\n")
    if head:
        lines.writerow(table.column_names)
    lines.writerows(zip(*map(text_of, table.columns), strict=True))


def _json_values(column: pa.ChunkedArray) -> Sequence[Any]:
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_string(kind):
        return list(column.to_pylist())
    if pa.types.is_floating(kind):
        # JSON has no NaN and no infinity
        return [v if v is not None and math.isfinite(v) else None for v in column.to_pylist()]
    return text_of(column)


def objects(table: pa.Table) -> list[str]:
    """Return each row as a JSON object on one line."""
    names = table.column_names
    columns = [_json_values(column) for column in table.columns]
    return [
        json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)
        for row in zip(*columns, strict=True)
    ]


def _write_json(table: pa.Table, out: TextIO) -> None:
    body = ",\n".join(f"  {line}" for line in objects(table))
    out.write(f"[\n{body}\n]\n" if body else "[]\n")


def _write_ndjson(table: pa.Table, out: TextIO) -> None:
    out.writelines(f"{line}\n" for line in objects(table))


_TEXTS: dict[str, Callable[[pa.Table, TextIO], None]] = {
    "table": _write_table,
    "vertical": _write_vertical,
    "csv": write_csv,
    "json": _write_json,
    "ndjson": _write_ndjson,
    "markdown": _write_markdown,
}

"""Plays the records of a file on a backend, and tells what is not as the file says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa

from penstock.errors import PenstockError
from tests.sql import values
from tests.sql.script import Context, Record, Refusal, Rows


class Backend(Protocol):
    """Whatever runs statements: parts of the mesh in this process, or a whole mesh."""

    @property
    def name(self) -> str: ...

    def run(self, sql: str, context: Context) -> pa.Table:
        """Run statements; return the last one's rows, if it has any. Raises PenstockError."""
        ...


def play(records: Iterable[Record], backend: Backend) -> Iterator[str]:
    """Yield a text for each record that does not do what it says."""
    labels: dict[str, list[tuple[str, ...]]] = {}
    for record in records:
        if backend.name in record.skipped:
            continue
        wrong = _judge(record, backend, labels)
        if record.fails:
            wrong = "" if wrong else f"now passes: take out `fails {record.fails}`"
        if wrong:
            yield f"line {record.line}: {record.sql}\n{wrong}\n"


def _judge(record: Record, backend: Backend, labels: dict[str, list[tuple[str, ...]]]) -> str:
    """Return what is wrong with a record's outcome; nothing when it is right."""
    expected = record.expected
    try:
        table = backend.run(record.sql, record.context)
    except PenstockError as error:
        return _judge_error(error, expected)
    if isinstance(expected, Refusal):
        return f"is answered, not refused with {expected.code or expected.pattern}"
    if expected is None:
        return ""
    return _judge_rows(table, expected, record.context.timezone, labels)


def _judge_error(error: PenstockError, expected: Refusal | Rows | None) -> str:
    if not isinstance(expected, Refusal):
        return f"fails: {error}"
    if expected.code and error.code not in expected.code.split("|"):
        return f"fails with {error.code}, not {expected.code}: {error}"
    if not re.search(expected.pattern, str(error), re.DOTALL):
        return f"fails in words that /{expected.pattern}/ is not in: {error}"
    return ""


def _judge_rows(
    table: pa.Table, expected: Rows, timezone: str, labels: dict[str, list[tuple[str, ...]]]
) -> str:
    letters = "".join(values.letter(field.type) for field in table.schema)
    if len(letters) != len(expected.types):
        return f"has {len(letters)} columns ({table.column_names}), not {len(expected.types)}"
    for name, wanted, found in zip(table.column_names, expected.types, letters, strict=True):
        if wanted not in (found, "?"):
            return f"column {name} is {found}, not {wanted}"
    rows = values.texts(table, timezone)
    wanted_rows = list(expected.rows)
    if expected.sorted:
        rows.sort()
        wanted_rows.sort()
    if expected.label and labels.setdefault(expected.label, rows) != rows:
        return f"differs from what the first query of label {expected.label} gave:\n{_shown(rows)}"
    pairs = zip(wanted_rows, rows, strict=False)
    if len(rows) == len(wanted_rows) and all(values.same(letters, w, f) for w, f in pairs):
        return ""
    return f"gives\n{_shown(rows)}\nnot\n{_shown(wanted_rows)}"


def _shown(rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join("  ".join(row) for row in rows) or "(no rows)"

"""A failing case as a file of the corpus, which anybody can add to `tests/sql`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from penstock.types import ColumnType
from tests.fuzz_select.draw_expressions import text_of
from tests.fuzz_select.kinds import LETTERS
from tests.fuzz_select.tables import RandomTable
from tests.fuzz_select.tree import output_kinds
from tests.fuzz_select.trial import Fault, Trial
from tests.sql.values import shown


def corpus_text(trial: Trial, fault: Fault) -> str:
    """Return the tables, rows and query of a case, and what plain Python answers."""
    words = set(re.findall(r"\w+", trial.sql.lower()))
    parts = [
        f"# {trial.name}, {fault.engine}: {_one_line(fault.words)}",
        "statement ok\nCREATE DATABASE sql_found",
        f"database sql_found\ntimezone {trial.zone}",
    ]
    for table in trial.world.tables:
        if words & {table.name, *table.children}:
            parts += _table(table, words)
    if trial.refused:
        parts.append(f"statement error {trial.refused}\n{trial.sql}")
        return "\n\n".join(parts) + "\n"
    letters = "".join(LETTERS[kind] for kind in output_kinds(trial.query))
    sort = "" if trial.query.order else " rowsort"
    rows = ["  ".join(_cells(row, letters, trial.zone)) for row in trial.wanted]
    parts.append("\n".join([f"query {letters}{sort}", trial.sql, "----", *rows]))
    return "\n\n".join(parts) + "\n"


def _one_line(words: str) -> str:
    return " ".join(words.split())[:300]


def _table(table: RandomTable, words: set[str]) -> Iterator[str]:
    columns = {n: k for n, k in table.columns.items() if n in words or n == "ts"}
    tags = {n: k for n, k in table.tags.items() if n in words or n == "k"}
    listed = _listed(columns)
    if not table.children:
        yield f"statement ok\nCREATE TABLE {table.name} ({listed})"
    else:
        yield f"statement ok\nCREATE STABLE {table.name} ({listed}) TAGS ({_listed(tags)})"
    for member in table.children or (table.name,):
        rows = [row for row in table.rows if row["tbname"] == member]
        using = f" USING {table.name} ({', '.join(tags)}) TAGS" if table.children else ""
        if table.children:
            given = rows[0] if rows else dict.fromkeys(tags)
            yield f"statement ok\nCREATE TABLE {member}{using} ({_values(given, tags)})"
        if rows:
            values = "\n".join(f"  ({_values(row, columns)})" for row in rows)
            names = ", ".join(columns)
            yield f"statement ok\nINSERT INTO {member} ({names}) VALUES\n{values}"


def _listed(columns: dict[str, ColumnType]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def _values(row: dict[str, Any], columns: dict[str, ColumnType]) -> str:
    return ", ".join(_value(row[name]) for name in columns)


def _value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return text_of(value)
    return str(value).lower()


def _cells(row: tuple[Any, ...], letters: str, zone: str) -> list[str]:
    return [shown(value, letter, zone) for value, letter in zip(row, letters, strict=True)]

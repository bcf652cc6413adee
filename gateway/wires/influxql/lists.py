"""SHOW: lists of what there is, in the form of series."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gateway.wires.influxql.parser import unsupported
from gateway.wires.influxql.schema import Measurement, field_type, measurements, table_name
from gateway.wires.influxql.tree import Page, Pattern, ShowList
from penstock.catalog.model import Database
from penstock.catalog.view import Catalog
from penstock.errors import SqlSemanticError

#: of SHOW MEASUREMENTS
_LONGEST_PATTERN = 256


def databases(catalog: Catalog) -> list[dict[str, Any]]:
    """Answer SHOW DATABASES."""
    names = sorted(d.name for d in catalog.databases())
    return [_series("databases", ["name"], [[name] for name in names])]


def policies(home: Database) -> list[dict[str, Any]]:
    """Answer SHOW RETENTION POLICIES: there is one, which is the database's KEEP."""
    hours = 0 if home.keep is None else home.keep.ticks("ms") // 3_600_000
    duration = f"{hours}h0m0s" if hours else "0s"
    columns = ["name", "duration", "shardGroupDuration", "replicaN", "default"]
    return [{"columns": columns, "values": [["autogen", duration, "168h0m0s", 1, True]]}]


def measurement_names(show: ShowList, catalog: Catalog, home: Database) -> list[dict[str, Any]]:
    """Answer SHOW MEASUREMENTS."""
    names = [[m.table.name] for m in choose_measurements(show, catalog, home)]
    kept = _page(names, show.page)
    return [_series("measurements", ["name"], kept)] if kept else []


def tag_keys(show: ShowList, catalog: Catalog, home: Database) -> list[dict[str, Any]]:
    """Answer SHOW TAG KEYS."""
    return _of_each(
        choose_measurements(show, catalog, home),
        ["tagKey"],
        lambda m: _page([[c.name] for c in m.tags], show.page),
    )


def field_keys(show: ShowList, catalog: Catalog, home: Database) -> list[dict[str, Any]]:
    """Answer SHOW FIELD KEYS."""
    return _of_each(
        choose_measurements(show, catalog, home),
        ["fieldKey", "fieldType"],
        lambda m: _page([[c.name, field_type(c.type)] for c in m.fields], show.page),
    )


def tag_values(
    measurement: Measurement, found: Iterable[tuple[str, str]], page: Page
) -> list[dict[str, Any]]:
    """Answer SHOW TAG VALUES of one measurement; *found* has keys and values."""
    rows = _page([list(pair) for pair in sorted(found)], page)
    return [_series(measurement.table.name, ["key", "value"], rows)] if rows else []


def choose_measurements(show: ShowList, catalog: Catalog, home: Database) -> list[Measurement]:
    """Return the measurements that a SHOW is about. Raises SqlSemanticError."""
    every = measurements(catalog, home.name)
    if not show.measurements:
        return every
    named = {table_name(home, n).lower() for n in show.measurements if isinstance(n, str)}
    patterns = [_compile(n) for n in show.measurements if isinstance(n, Pattern)]
    return [
        m for m in every if m.table.name.lower() in named or any(p(m.table.name) for p in patterns)
    ]


def _compile(pattern: Pattern) -> Callable[[str], bool]:
    """Return a test of names. Only what every engine reads the same way, and quickly, is taken:
    letters, `.`, `.*` and anchors.
    """
    plain = re.sub(r"\\([.\-/])|\.\*|[\w .\-:/]", "", pattern.text.removeprefix("^"))
    if plain not in ("", "$") or len(pattern.text) > _LONGEST_PATTERN:
        raise unsupported("this regular expression", "letters, . and .* between ^ and $ are")
    if pattern.text.count(".*") > 2:
        raise unsupported("more than two .* in a regular expression")
    try:
        compiled = re.compile(pattern.text)
    except re.error as wrong:
        raise SqlSemanticError(f"the regular expression cannot be read: {wrong}") from None
    return lambda name: compiled.search(name) is not None


def _of_each(
    found: Iterable[Measurement],
    columns: list[str],
    rows: Callable[[Measurement], Sequence[list[Any]]],
) -> list[dict[str, Any]]:
    made = ((m, rows(m)) for m in found)
    return [_series(m.table.name, columns, some) for m, some in made if some]


def _page(rows: Sequence[list[Any]], page: Page) -> Sequence[list[Any]]:
    return rows[page.offset : page.offset + page.limit] if page.limit else rows[page.offset :]


def _series(name: str, columns: list[str], values: Sequence[list[Any]]) -> dict[str, Any]:
    return {"name": name, "columns": columns, "values": list(values)}

"""Bodies of line protocol with bad lines: everything else is written, as InfluxDB does.

Owns which lines a fault costs, and the words in which they are told. Does not write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gateway.layout import RowLayout
from gateway.row_checks import check
from gateway.row_error import RowError
from gateway.rows import from_objects
from gateway.wires.points import LineError, Point
from penstock.catalog.model import Table
from penstock.errors import SchemaError
from penstock.sql.plan import Column

#: lines of one table that are looked at one by one; who sends more bad ones than that has the rest
#: of them refused together
MOST_REFUSED = 10_000
_PIECE = 256
_TOLD = 5
_LISTED = 100
#: sorts of values that never stand for one another
_TRUTH = "boolean"
_NUMBER = "number"
Row = dict[str, Any]


class PartialWrite(SchemaError):
    """Some lines were refused; the others are written."""

    code = "E_LINE"

    def __init__(
        self, refused: Sequence[LineError], written: int, notices: Sequence[str] = ()
    ) -> None:
        """*notices*: of what is written."""
        self.notices = notices
        self.lines = sorted(refused, key=lambda e: e.line)
        told = "; ".join(e.message for e in self.lines[:_TOLD]) + (
            " …" if len(self.lines) > _TOLD else ""
        )
        begin = "partial write: " if written else ""
        super().__init__(
            f"{begin}{told} dropped={len(self.lines)}", detail=f"{written} points are written"
        )

    def to_dict(self) -> dict[str, Any]:
        listed = [{"line": e.line, "message": e.message} for e in self.lines[:_LISTED]]
        return {
            **super().to_dict(),
            "line": self.lines[0].line,
            "dropped": len(self.lines),
            "lines": listed,
        }


def agreeing(points: Sequence[Point], table: Table | None) -> tuple[list[Point], list[LineError]]:
    """Return the points whose names are fields and tags as in *table*, and as in the points before
    them; neither is a boolean a number there, nor a number a boolean.
    """
    columns = table.columns if table is not None else ()
    fields = {c.name.lower(): _sort_of_column(c) for c in columns}
    tags = {t.name.lower() for t in table.tags} if table is not None else set()
    kept: list[Point] = []
    refused: list[LineError] = []
    for point in points:
        own_fields = {name.lower(): _sort_of(value) for name, value in point.fields.items()}
        own_tags = {t.lower() for t, _ in point.tags}
        both = (own_fields.keys() & (tags | own_tags)) | (own_tags & fields.keys())
        odd = [n for n, s in own_fields.items() if s and fields.get(n, s) not in (s, "")]
        if both:
            refused.append(LineError(f'"{min(both)}" is a tag and a field', point.line))
        elif odd:
            refused.append(_conflict(odd[0], own_fields[odd[0]], fields[odd[0]], point))
        else:
            for name, sort in own_fields.items():
                fields.setdefault(name, sort)
            tags |= own_tags
            kept.append(point)
    return kept, refused


def _sort_of(value: object) -> str:
    if isinstance(value, bool):
        return _TRUTH
    return "" if isinstance(value, str) else _NUMBER


def _sort_of_column(column: Column) -> str:
    if column.type.kind == "BOOL":
        return _TRUTH
    return _NUMBER if column.type.numeric else ""


def _conflict(name: str, sort: str, before: str, point: Point) -> LineError:
    """Make the error of a value in a field of another type, in InfluxDB's words."""
    words = (
        f'field type conflict: input field "{name}" on measurement "{point.measurement}"'
        f" is type {sort}, already exists as type {before}"
    )
    return LineError(words, point.line)


def fitting(layout: RowLayout, rows: Sequence[Row], now: int) -> tuple[list[int], dict[int, str]]:
    """Return places of the *rows* that their table takes, and of the others why not. *now* in
    ticks.
    """
    kept: list[int] = []
    refused: dict[int, str] = {}
    for start in range(0, len(rows), _PIECE):
        places = range(start, min(start + _PIECE, len(rows)))
        if len(refused) >= MOST_REFUSED:
            refused |= dict.fromkeys(places, f"not looked at behind {MOST_REFUSED} bad lines")
        elif _fault(layout, rows[start : places.stop], now) is None:
            kept += places
        else:
            found = {place: _fault(layout, rows[place : place + 1], now) for place in places}
            refused |= {place: why for place, why in found.items() if why is not None}
            kept += [place for place, why in found.items() if why is None]
    return kept, refused


def _fault(layout: RowLayout, rows: Sequence[Row], now: int) -> str | None:
    """Return why these rows are refused."""
    try:
        check(layout, from_objects(layout, rows), now)
    except RowError as error:
        return words_of(error)
    return None


def words_of(error: RowError) -> str:
    """Return the words of *error* without the row's number: the line's stands before them."""
    return error.message.partition(": ")[2] or error.message


def shapes(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Return the points in groups that have the same fields and tags, each in its order."""
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Point]] = {}
    for point in points:
        found.setdefault((tuple(sorted(point.fields)), tuple(t for t, _ in point.tags)), []).append(
            point
        )
    yield from found.values()

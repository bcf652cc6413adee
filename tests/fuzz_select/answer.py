"""The answer of a SELECT in plain Python: loops over lists of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from typing import Any

from tests.fuzz_select import windows
from tests.fuzz_select.evaluate import Place, Row, evaluate
from tests.fuzz_select.ordering import compare, key
from tests.fuzz_select.tables import World, columns_of
from tests.fuzz_select.tree import (
    Column,
    Derived,
    Expression,
    Join,
    Ordered,
    Query,
    Select,
    Source,
    TableSource,
    Union,
    aggregated,
    output_kinds,
)

Answer = list[tuple[Any, ...]]


class Answerer:
    """Answers queries over the tables of a world, in a time zone."""

    def __init__(self, world: World, zone: str) -> None:
        self._world = world
        self._zone = zone

    def answer(self, query: Query, outer: Row | None = None) -> Answer:
        """Return the rows of an answer."""
        outer = outer or {}
        if isinstance(query, Union):
            found = [*self.answer(query.left, outer), *self.answer(query.right, outer)]
            found = found if query.every else distinct(found)
            return _limited(_ordered(found, query.order), query.limit, query.offset)
        return self._select(query, outer)

    def _select(self, select: Select, outer: Row) -> Answer:
        rows = [{**outer, **row} for row in self._source(select.source, outer)]
        if select.where is not None:
            rows = [row for row in rows if self._value(select.where, row) is True]
        if not select.partition:
            found = self._one_partition(select, rows)
        else:
            parts = self._groups(select.partition, rows).values()
            found = [row for part in parts for row in self._one_partition(select, part)]
            return _ordered(found, select.order)
        return found

    def _one_partition(self, select: Select, rows: list[Row]) -> Answer:
        """Return the answer over the rows of one partition, ordered and limited."""
        places = [p for p in self._places(select, rows) if self._kept(select, p)]
        found = [tuple(evaluate(item, place) for item in select.items) for place in places]
        if select.distinct:
            found = distinct(found)
        return _limited(_ordered(found, select.order), select.limit, select.offset)

    def _kept(self, select: Select, place: Place) -> bool:
        return select.having is None or evaluate(select.having, place) is True

    def _places(self, select: Select, rows: list[Row]) -> list[Place]:
        """Return where the items are computed: rows, groups or windows."""
        if select.window is not None:
            return self._windows(select, rows)
        if select.group:
            return [self._group(part) for part in self._groups(select.group, rows).values()]
        checked = (*select.items, *([select.having] if select.having is not None else []))
        if any(map(aggregated, checked)):
            return [self._group(rows)]
        return [Place(row, self._zone, self._ask) for row in rows]

    def _group(self, rows: Sequence[Row], window: dict[str, int] | None = None) -> Place:
        first = rows[0] if rows else {}
        return Place(first, self._zone, self._ask, rows, window or {})

    def _windows(self, select: Select, rows: list[Row]) -> list[Place]:
        assert select.window is not None and isinstance(select.source, TableSource)
        time = f"{select.source.alias}.ts"
        found = windows.cut(select.window, rows, time, self._value, self._zone)
        return [
            self._group(w.rows, {"_wstart": w.start, "_wend": w.end, "_wduration": w.end - w.start})
            for w in found
        ]

    def _groups(self, keys: Iterable[Expression], rows: list[Row]) -> dict[Any, list[Row]]:
        groups: dict[Any, list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(_same(self._value(k, row)) for k in keys), []).append(row)
        return groups

    def _value(self, node: Expression, row: Row) -> Any:
        return evaluate(node, Place(row, self._zone, self._ask))

    def _ask(self, select: Select, outer: Row) -> Answer:
        return self.answer(select, outer)

    # ---------------------------------------------------------------- FROM

    def _source(self, source: Source, outer: Row) -> list[Row]:
        if isinstance(source, TableSource):
            rows = sorted(self._world.rows(source.table), key=lambda r: (r["ts"], r["tbname"]))
            return [{f"{source.alias}.{k}": v for k, v in row.items()} for row in rows]
        if isinstance(source, Derived):
            found = self.answer(source.select, outer)
            return [{f"{source.alias}.c{i}": v for i, v in enumerate(row)} for row in found]
        return self._join(source, outer)

    def _join(self, join: Join, outer: Row) -> list[Row]:
        left = self._source(join.left, outer)
        right = self._source(join.right, outer)
        matched: set[int] = set()
        found: list[Row] = []
        nothing = dict.fromkeys(_names(join.right, self._world))
        for one in left:
            pairs = [(i, {**outer, **one, **other}) for i, other in enumerate(right)]
            hits = [(i, p) for i, p in pairs if self._joined(join, p)]
            matched.update(i for i, _ in hits)
            found += [pair for _, pair in hits]
            if not hits and join.side in ("LEFT", "FULL"):
                found.append({**one, **nothing})
        if join.side in ("RIGHT", "FULL"):
            no_left = dict.fromkeys(_names(join.left, self._world))
            found += [{**no_left, **r} for i, r in enumerate(right) if i not in matched]
        return found

    def _joined(self, join: Join, pair: Row) -> bool:
        return join.on is None or self._value(join.on, pair) is True


def _names(source: Source, world: World) -> list[str]:
    """Return the keys that rows of *source* have."""
    if isinstance(source, Join):
        return [*_names(source.left, world), *_names(source.right, world)]
    return [c.place for c in scope_of(source, world)]


def scope_of(source: Source, world: World) -> list[Column]:
    """Return the columns that FROM gives."""
    if isinstance(source, TableSource):
        return columns_of(source.alias, stable=world.stable_of(source.table))
    if isinstance(source, Derived):
        kinds = output_kinds(source.select)
        return [Column(kind, source.alias, f"c{i}") for i, kind in enumerate(kinds)]
    return [*scope_of(source.left, world), *scope_of(source.right, world)]


def _same(value: Any) -> Any:
    """Return what tells groups apart."""
    return (value is None, None if value is None else key(value))


def distinct(rows: Answer) -> Answer:
    """Return the first of the rows that are the same."""
    return list({tuple(map(_same, row)): row for row in reversed(rows)}.values())[::-1]


def _limited(rows: Answer, limit: int | None, offset: int | None) -> Answer:
    begun = rows[offset or 0 :]
    return begun if limit is None else begun[:limit]


def _ordered(rows: Answer, order: Sequence[Ordered]) -> Answer:
    return sorted(rows, key=cmp_to_key(comparing(order))) if order else rows


def comparing(order: Sequence[Ordered]) -> Callable[[Sequence[Any], Sequence[Any]], int]:
    """Return the comparison of two rows that an ORDER BY asks for."""

    def compare_rows(left: Sequence[Any], right: Sequence[Any]) -> int:
        for item in order:
            found = _compare_items(left[item.place], right[item.place], item)
            if found:
                return found
        return 0

    return compare_rows


def _compare_items(left: Any, right: Any, item: Ordered) -> int:
    if left is None or right is None:
        side = int(left is None) - int(right is None)
        return -side if item.nulls_first else side
    found = compare(left, right)
    assert found is not None
    return -found if item.descending else found

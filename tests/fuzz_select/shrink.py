"""A failing case made smaller, as long as it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz_select.kinds import standing_for
from tests.fuzz_select.tables import RandomTable, World
from tests.fuzz_select.tree import (
    Aggregate,
    Apply,
    Derived,
    Exists,
    Expression,
    InQuery,
    Join,
    Ordered,
    Query,
    Select,
    Source,
    Union,
    Window,
)
from tests.fuzz_select.trial import Fault, Trial

#: of a case; what is left then is small enough for a reader
_SECONDS = 30.0
#: judges a case; a tree that makes no sense has no fault
Judge = Callable[[Trial], Fault | None]


def shrink(trial: Trial, fault: Fault, judge: Judge) -> tuple[Trial, Fault]:
    """Return the smallest case found with a fault of the same engine, and its fault."""
    end = time.monotonic() + _SECONDS
    again = True
    while again:
        again = False
        for smaller in smaller_trials(trial):
            if time.monotonic() > end:
                return trial, fault
            found = judge(smaller)
            if found is not None and found.engine == fault.engine:
                trial, fault = smaller, found
                again = True
                break
    return trial, fault


def smaller_trials(trial: Trial) -> Iterator[Trial]:
    """Yield cases with fewer rows or a smaller query; large steps first."""
    for world in smaller_worlds(trial.world):
        yield replace(trial, world=world)
    for query in smaller_queries(trial.query):
        yield replace(trial, query=query)


def smaller_worlds(world: World) -> Iterator[World]:
    for index, table in enumerate(world.tables):
        for made in _smaller_tables(table):
            tables = (*world.tables[:index], made, *world.tables[index + 1 :])
            yield replace(world, tables=tables)


def _smaller_tables(table: RandomTable) -> Iterator[RandomTable]:
    count = len(table.rows)
    step = count
    while step >= 1:
        for begin in range(0, count, step):
            rows = table.rows[:begin] + table.rows[begin + step :]
            # rows that go were in segments or behind them
            gone = max(0, min(begin + step, table.flushed) - begin)
            yield replace(table, rows=rows, flushed=table.flushed - gone)
        step //= 2
    if 0 < table.flushed < count:
        yield replace(table, flushed=count)
    if table.flushed:
        yield replace(table, flushed=0)


# ---------------------------------------------------------------- queries


def smaller_queries(query: Query) -> Iterator[Query]:
    if query.limit is not None:
        yield replace(query, limit=None, offset=None)
    elif query.order:
        yield replace(query, order=())
    if isinstance(query, Union):
        yield from (query.left, query.right)
        for side in ("left", "right"):
            for made in smaller_queries(getattr(query, side)):
                yield replace(query, **{side: made})
        return
    yield from _smaller_selects(query)


def _smaller_selects(select: Select) -> Iterator[Select]:
    for clause in ("where", "having"):
        if getattr(select, clause) is not None:
            yield replace(select, **{clause: None})
    for flag in ("distinct", "by_place"):
        if getattr(select, flag):
            yield replace(select, **{flag: False})
    for clause in ("partition", "group"):
        keys = getattr(select, clause)
        for i in range(len(keys)):
            yield replace(select, **{clause: keys[:i] + keys[i + 1 :]})
    if len(select.items) > 1:
        yield from (_without_item(select, i) for i in range(len(select.items)))
    for source in _smaller_sources(select.source):
        yield replace(select, source=source)
    yield from _smaller_clauses(select)


def _smaller_clauses(select: Select) -> Iterator[Select]:
    for clause in ("where", "having"):
        node = getattr(select, clause)
        for made in smaller_expressions(node) if node is not None else ():
            yield replace(select, **{clause: made})
    for i, item in enumerate(select.items):
        for made in smaller_expressions(item):
            yield replace(select, items=(*select.items[:i], made, *select.items[i + 1 :]))
    if select.window is not None:
        for window in _smaller_windows(select.window):
            yield replace(select, window=window)


def _without_item(select: Select, index: int) -> Select:
    items = select.items[:index] + select.items[index + 1 :]
    order = tuple(
        Ordered(o.place - (o.place > index), o.descending, o.nulls_first)
        for o in select.order
        if o.place != index
    )
    return replace(select, items=items, order=order)


def _smaller_windows(window: Window) -> Iterator[Window]:
    for name in ("offset", "sliding", "true_for"):
        if getattr(window, name):
            yield replace(window, **{name: 0})
    for i, node in enumerate(window.of):
        for made in smaller_expressions(node):
            yield replace(window, of=(*window.of[:i], made, *window.of[i + 1 :]))


def _smaller_sources(source: Source) -> Iterator[Source]:
    if isinstance(source, Derived):
        for query in smaller_queries(source.select):
            yield replace(source, select=query)
    if isinstance(source, Join):
        yield from (source.left, source.right)
        for made in smaller_expressions(source.on) if source.on is not None else ():
            yield replace(source, on=made)


def smaller_expressions(node: Expression) -> Iterator[Expression]:
    """Yield what may stand where *node* does: what is below it, and itself with less below."""
    if isinstance(node, Apply):
        yield from (o for o in node.operands if o.kind in standing_for(node.kind))
        for i, operand in enumerate(node.operands):
            for made in smaller_expressions(operand):
                operands = (*node.operands[:i], made, *node.operands[i + 1 :])
                yield replace(node, operands=operands)
    elif isinstance(node, Aggregate) and node.of is not None:
        for made in smaller_expressions(node.of):
            yield replace(node, of=made)
    elif isinstance(node, InQuery | Exists):
        for query in _smaller_selects(node.select):
            if len(query.items) == len(node.select.items):
                yield replace(node, select=query)

"""A typed tree as text of the dialect."""

from __future__ import annotations

from tests.fuzz_select.tree import (
    Aggregate,
    Apply,
    Column,
    Derived,
    Exists,
    Expression,
    InQuery,
    Join,
    Ordered,
    Query,
    Select,
    Source,
    TableSource,
    Union,
    Value,
    Window,
    WindowColumn,
)

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "a"))


def expression(node: Expression, *, qualified: bool = True) -> str:
    """Return the text of an expression.

    Args:
        qualified: whether columns are named with their relations.
    """
    if isinstance(node, Value):
        return node.text
    if isinstance(node, Column):
        return f"{node.relation}.{node.name}" if qualified else node.name
    if isinstance(node, WindowColumn):
        return node.name
    if isinstance(node, Apply):
        texts = [expression(o, qualified=qualified) for o in node.operands]
        return node.operation.text.format(*texts)
    if isinstance(node, Aggregate):
        return _aggregate(node, qualified)
    if isinstance(node, InQuery):
        return f"({expression(node.of, qualified=qualified)} IN ({query(node.select)}))"
    assert isinstance(node, Exists)
    return f"EXISTS ({query(node.select)})"


def _aggregate(node: Aggregate, qualified: bool) -> str:
    of = "*" if node.of is None else expression(node.of, qualified=qualified)
    distinct = "DISTINCT " if node.distinct else ""
    share = "" if node.share is None else f", {node.share}"
    return f"{node.name}({distinct}{of}{share})"


def query(tree: Query) -> str:
    """Return the text of a query."""
    if isinstance(tree, Union):
        word = "UNION ALL" if tree.every else "UNION"
        text = f"{query(tree.left)} {word} {query(tree.right)}"
        return text + _tail(tree)
    return _select(tree)


def _select(tree: Select) -> str:
    # names are told apart where there are several relations, or a query around this one
    qualified = not isinstance(tree.source, TableSource) or tree.source.alias != tree.source.table
    items = [f"{expression(e, qualified=qualified)} AS c{i}" for i, e in enumerate(tree.items)]
    parts = [f"SELECT {'DISTINCT ' if tree.distinct else ''}{', '.join(items)}"]
    parts.append(f"FROM {_source(tree.source)}")
    if tree.where is not None:
        parts.append(f"WHERE {expression(tree.where, qualified=qualified)}")
    for clause, keys in (("PARTITION BY", tree.partition), ("GROUP BY", tree.group)):
        if clause == "GROUP BY" and tree.window is not None:
            parts.append(_window(tree.window, qualified))
        if keys:
            texts = [_key(key, tree, clause, qualified) for key in keys]
            parts.append(f"{clause} {', '.join(texts)}")
    if tree.having is not None:
        parts.append(f"HAVING {expression(tree.having, qualified=qualified)}")
    return " ".join(parts) + _tail(tree)


def _key(key: Expression, tree: Select, clause: str, qualified: bool) -> str:
    if clause == "GROUP BY" and tree.by_place and key in tree.items:
        return str(tree.items.index(key) + 1)
    return expression(key, qualified=qualified)


def _source(source: Source) -> str:
    if isinstance(source, TableSource):
        same = source.alias == source.table
        return source.table if same else f"{source.table} {source.alias}"
    if isinstance(source, Derived):
        return f"({query(source.select)}) {source.alias}"
    assert isinstance(source, Join)
    text = f"{_source(source.left)} {source.side} JOIN {_source(source.right)}"
    return text if source.on is None else f"{text} ON {expression(source.on)}"


def duration(milliseconds: int) -> str:
    """Return a length of time in the largest unit that it is whole in."""
    unit, letter = next((u, x) for u, x in _UNITS if milliseconds % u == 0)
    return f"{milliseconds // unit}{letter}"


def _window(window: Window, qualified: bool) -> str:
    of = [expression(e, qualified=qualified) for e in window.of]
    if window.clause == "INTERVAL":
        size = f"{window.days}d" if window.days else duration(window.size)
        offset = f", {duration(window.offset)}" if window.offset else ""
        sliding = f" SLIDING({duration(window.sliding)})" if window.sliding else ""
        return f"INTERVAL({size}{offset}){sliding}"
    if window.clause == "SESSION":
        return f"SESSION(ts, {duration(window.size)})"
    if window.clause == "COUNT_WINDOW":
        return f"COUNT_WINDOW({', '.join(map(str, window.numbers))})"
    held = f" TRUE_FOR({duration(window.true_for)})" if window.true_for else ""
    if window.clause == "STATE_WINDOW":
        return f"STATE_WINDOW({of[0]}){held}"
    return f"EVENT_WINDOW START WITH {of[0]} END WITH {of[1]}{held}"


def _tail(tree: Query) -> str:
    text = ""
    if tree.order:
        by_place = isinstance(tree, Select) and tree.by_place
        items = [_ordered(item, by_place=by_place) for item in tree.order]
        text += f" ORDER BY {', '.join(items)}"
    if tree.limit is not None:
        text += f" LIMIT {tree.limit}"
    if tree.offset is not None:
        text += f" OFFSET {tree.offset}"
    return text


def _ordered(item: Ordered, *, by_place: bool) -> str:
    nulls = {True: " NULLS FIRST", False: " NULLS LAST", None: ""}[item.nulls_first]
    column = str(item.place + 1) if by_place else f"c{item.place}"
    return f"{column}{' DESC' if item.descending else ''}{nulls}"

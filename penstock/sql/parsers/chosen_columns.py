"""`cols(last(v), ts, w AS x)` of a select list, written as a call for each column."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from sqlglot import exp

from penstock.sql import nodes


def split_columns(item: exp.Expr, fail: Callable[[str, str], NoReturn]) -> list[exp.Expr]:
    """Return *item* of a select list, or an item for each column of cols().

    Args:
        fail: refuses what was read last, with a message and a hint.
    """
    call = item.unalias()
    if not isinstance(call, exp.Anonymous) or str(call.this) != nodes.COLS:
        return [item]
    outputs = call.expressions[1:]
    if any(isinstance(output.unalias(), exp.Star) for output in outputs):
        fail("* is not possible in cols()", "name the columns: cols(last(v), ts, v)")
    named = isinstance(item, exp.Alias)
    if named and (len(outputs) > 1 or any(isinstance(one, exp.Alias) for one in outputs)):
        fail(
            "a name behind cols() is that of its only column",
            "name each column inside: cols(last(v), ts AS t, v AS newest)",
        )
    if named or not outputs:
        return [item]
    return [_column(call.expressions[0], output, item) for output in outputs]


def _column(chooser: exp.Expr, output: exp.Expr, item: exp.Expr) -> exp.Expr:
    """Return one column of cols(), called as it would be beside its function."""
    value = output.unalias()
    if isinstance(output, exp.Alias):
        name = output.args["alias"]
    elif isinstance(value, exp.Column):
        name = value.this.copy()
    else:
        name = exp.Identifier(this=str(output.meta["sql"]), quoted=False)
    call = exp.Anonymous(this=nodes.COLS, expressions=[chooser.copy(), value])
    made = exp.Alias(this=call, alias=name)
    for node, at in ((call, item), (made, output)):
        node.meta.update({key: at.meta[key] for key in ("start", "end") if key in at.meta})
    return made

"""Rows as HTML and names as text: escaped, and of a bounded size, whoever has chosen them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

#: rows that a notebook shows, and the most that it can be asked to show
SHOWN_ROWS = 20
MOST_ROWS = 100
#: columns of a table, and characters of a cell or a name, beyond which the rest is left out
_COLUMNS = 50
_CELL = 200
_NAME = 80
#: names and values are no formulas, whatever dollars are in them
VERBATIM = 'class="tex2jax_ignore mathjax_ignore"'

Rows = Sequence[Sequence[Any]]


def table_html(names: Sequence[str], rows: Rows, hidden_rows: int = 0) -> str:
    """Return a table with a line below that says how much is not in it.

    Args:
        hidden_rows: how many rows there are besides *rows*.
    """
    shown = names[:_COLUMNS]
    head = "".join(f"<th>{html.escape(shorten(name, _NAME))}</th>" for name in shown)
    body = "".join(f"<tr>{''.join(map(_cell, row[:_COLUMNS]))}</tr>" for row in rows)
    table = f"<table {VERBATIM}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    hidden = [
        f"{count:,} more {what}"
        for count, what in ((hidden_rows, "rows"), (len(names) - len(shown), "columns"))
        if count > 0
    ]
    return table + (f"<p>and {' and '.join(hidden)}</p>" if hidden else "")


def line(text: str, most: int = _NAME) -> str:
    """Return *text* on one line: what a terminal would take for an order is shown as its code."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: most + 1])
    return shorten(shown, most)


def names_line(names: Sequence[str]) -> str:
    """Return names, separated by commas; of many only the first."""
    first = ", ".join(line(name) for name in names[:_COLUMNS])
    return first + (f" and {len(names) - _COLUMNS:,} more" if len(names) > _COLUMNS else "")


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _cell(value: Any) -> str:
    if value is None:
        return "<td>NULL</td>"
    if isinstance(value, (str, bytes)):
        # of a large one, the rest is never looked at
        value = value[: _CELL + 1]
    return f"<td>{html.escape(shorten(str(value), _CELL))}</td>"

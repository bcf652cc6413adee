"""What a live object looks like at one moment, as one line of text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.notebook.markup import VERBATIM, Rows, line, names_line, table_html

#: characters of a state or fact, which may hold the text of an error
_FACT = 300


@dataclass(frozen=True)
class NotebookView:
    """
    Args:
        title: what it is, with its name: `subscription to table plant.meters`.
        state: connected or not, and why.
        facts: how far it is.
        names: of its columns; empty while nobody knows them.
        rows: the newest ones, oldest first.
    """

    title: str
    state: str
    facts: Sequence[str] = ()
    names: Sequence[str] = ()
    rows: Rows = ()

    def __repr__(self) -> str:
        columns = [f"columns {names_line(self.names)}"] if self.names else []
        said = [line(text, _FACT) for text in (self.state, *self.facts)]
        return f"<{line(self.title, _FACT)}: {', '.join(said + columns)}>"

    def _repr_html_(self) -> str:
        said = ", ".join(line(text, _FACT) for text in (self.state, *self.facts))
        title = html.escape(line(self.title, _FACT))
        head = f"<p {VERBATIM}><b>{title}</b>: {html.escape(said)}</p>"
        return head + (table_html(self.names, self.rows) if self.names else "")


def moment(seconds: float) -> str:
    """Return a time in seconds of the epoch as text."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

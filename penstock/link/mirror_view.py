"""A followed table of another deployment, as a notebook shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import PenstockError
from penstock.link.mirror_content import MirrorContent
from penstock.notebook.view import NotebookView, moment


def mirror_view(
    shown: str, status: Mapping[str, Any], content: MirrorContent, rows: int, *, hidden: bool
) -> NotebookView:
    """Return what it looks like.

    Args:
        shown: its name.
        status: its state, errors and times.
        content: what it holds; the caller has the lock.
        rows: most rows to show.
        hidden: it shows no rows while it is cut off.
    """
    state = status["state"]
    if status["error"] is not None and state != "closed":
        state += f" ({status['error']['message']})"
    title = f"live table {shown}"
    try:
        count, newest = content.newest(rows)
    except PenstockError:  # nobody knows yet what it looks like
        return NotebookView(title, state)
    if hidden:
        count = 0
        newest = newest.slice(0, 0)
    facts = [f"{count:,} rows"]
    if status["updated_at"]:
        facts.append(f"the last change at {moment(status['updated_at'])}")
    if status["reconnects"]:
        facts.append(f"reconnected {status['reconnects']:,} times")
    lines = [list(row.values()) for row in newest.to_pylist()]
    return NotebookView(title, state, facts, newest.column_names, lines)

"""A subscription to a stream table, as a notebook shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import PenstockError
from penstock.notebook.newest_rows import NewestRows
from penstock.notebook.view import NotebookView, moment


def subscription_view(
    worker: Mapping[str, Any],
    error: PenstockError | None,
    newest: NewestRows,
    rows: int,
    *,
    connected: bool,
) -> NotebookView:
    """Return what it looks like.

    Args:
        worker: its line of subWorkers.
        error: what has ended it early.
        newest: rows that came.
        rows: most rows to show.
        connected: there is a connection to a node.
    """
    names, shown = newest.last(rows)
    facts = [f"next row {worker['msgOffset']}", f"{worker['processedMsgCount']:,} rows handled"]
    if newest.count:
        facts.append(f"the last came at {moment(newest.at)}")
    if worker["failedMsgCount"]:
        facts.append(f"{worker['failedMsgCount']:,} calls failed: {worker['lastErrMsg']}")
    title = f"subscription {worker['action']} to stream table {worker['table']}"
    return NotebookView(
        title.replace("  ", " "), _state(worker, error, connected), facts, names, shown
    )


def _state(worker: Mapping[str, Any], error: PenstockError | None, connected: bool) -> str:
    if error is not None:
        return f"ended: {error.message}"
    if not worker["running"]:
        return "closed"
    if not worker["executes"]:
        return "stands by: another program gets the rows"
    return f"connected to {worker['node']}" if connected else "looks for a node"

"""Objects that follow rows: their repr, and a display in a notebook, drawn anew as rows come.

IPython is asked for only when something is displayed: a notebook has it, other programs need none.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

from penstock.errors import ConfigError
from penstock.notebook.markup import MOST_ROWS, SHOWN_ROWS
from penstock.notebook.view import NotebookView

#: seconds between two drawings: faster than anybody reads, slow enough for a browser
_PACE = 0.2


class Live:
    """Something that follows rows. Its kinds say what it looks like and when that may change."""

    def view(self, rows: int = SHOWN_ROWS) -> NotebookView:
        """Return what it looks like now, with at most *rows* rows."""
        raise NotImplementedError

    def _await_change(self, seconds: float) -> bool:
        """Wait for something new, at most so long. Tell whether more may come."""
        raise NotImplementedError

    def display(self, seconds: float | None = None, *, rows: int = SHOWN_ROWS) -> None:
        """Show the newest rows in a notebook, as they come.

        Args:
            seconds: for how long; by default until the cell is interrupted, or no more can come.
            rows: how many of them are shown, at most 100.

        Raises:
            ConfigError: this is no notebook.
            PenstockError: what has ended it. The display shows it, too.
        """
        _Display(lambda: self.view(max(0, min(rows, MOST_ROWS)))).run(self._await_change, seconds)

    def __repr__(self) -> str:
        return repr(self.view(0))

    def _repr_html_(self) -> str:
        return self.view()._repr_html_()


class _Display:
    """One output of a notebook."""

    def __init__(self, view: Callable[[], NotebookView]) -> None:
        """Draw *view* for the first time. Raises ConfigError: this is no notebook."""
        self._view = view
        first = view()
        self._drawn = first._repr_html_()
        self._handle: Any = _ipython_display()(first, display_id=True)
        self._drawn_at = time.monotonic()

    def run(self, await_change: Callable[[float], bool], seconds: float | None) -> None:
        """Draw what is new until there can be no more, time is over, or somebody interrupts."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while True:
                left = _PACE if end is None else min(end - time.monotonic(), _PACE)
                if left <= 0 or not await_change(left):
                    return
                if time.monotonic() - self._drawn_at >= _PACE:
                    self._draw()
        except KeyboardInterrupt:
            return  # whoever reads has seen enough
        finally:
            self._draw()

    def _draw(self) -> None:
        now = self._view()
        drawn = now._repr_html_()
        if drawn != self._drawn:
            self._handle.update(now)
            self._drawn = drawn
        self._drawn_at = time.monotonic()


def _ipython_display() -> Callable[..., Any]:
    """Return IPython's `display`. Raises ConfigError: nobody would see it."""
    try:
        ipython = importlib.import_module("IPython")
    except ImportError:
        raise ConfigError(
            "a live display needs IPython, which is not installed here",
            hint="pip install ipykernel; outside a notebook iterate over the rows, or use"
            " `penstock follow`",
        ) from None
    if ipython.get_ipython() is None:
        raise ConfigError(
            "a live display needs a notebook, and this program runs outside of one",
            hint="iterate over the rows, or use `penstock follow`",
        )
    display: Callable[..., Any] = importlib.import_module("IPython.display").display
    return display

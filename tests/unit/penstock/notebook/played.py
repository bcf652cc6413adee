"""A notebook that is played: what IPython would show, written down."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest


class PlayedNotebook:
    """Takes the place of IPython. `drawn` is the HTML of each drawing of the one output."""

    def __init__(self) -> None:
        self.drawn: list[str] = []
        #: called with the number of the drawing, which may interrupt
        self.on_drawing: Callable[[int], None] = lambda number: None

    def install(self, monkeypatch: pytest.MonkeyPatch) -> PlayedNotebook:
        shell = SimpleNamespace(get_ipython=object)
        monkeypatch.setitem(sys.modules, "IPython", shell)
        monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=self._display))
        return self

    def _display(self, shown: Any, *, display_id: bool) -> PlayedNotebook:
        assert display_id and not self.drawn
        self.update(shown)
        return self

    def update(self, shown: Any) -> None:
        self.drawn.append(shown._repr_html_())
        self.on_drawing(len(self.drawn))

"""A live display: drawn as rows come, ended by time, by an interrupt, or by an error."""

from __future__ import annotations

import sys
import time

import pytest

from penstock.errors import ConfigError, RemoteError
from penstock.notebook.live import Live
from penstock.notebook.view import NotebookView
from tests.unit.penstock.notebook.played import PlayedNotebook


class Counter(Live):
    """Counts the waits, up to `most`."""

    def __init__(self, most: int, ends: Exception | None = None) -> None:
        self.waits = 0
        self.most = most
        self.ends = ends
        self.asked: list[int] = []

    def view(self, rows: int = 20) -> NotebookView:
        self.asked.append(rows)
        return NotebookView("counter", "counts", [f"{self.waits} waits"], ["n"], [[self.waits]])

    def _await_change(self, seconds: float) -> bool:
        time.sleep(min(seconds, 0.05))
        self.waits += 1
        if self.waits == self.most and self.ends is not None:
            raise self.ends
        return self.waits < self.most


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> PlayedNotebook:
    return PlayedNotebook().install(monkeypatch)


def test_it_draws_at_a_pace_and_at_last_the_end(notebook: PlayedNotebook) -> None:
    Counter(20).display(rows=1_000_000)
    assert "0 waits" in notebook.drawn[0] and "20 waits" in notebook.drawn[-1]
    # five drawings a second, not one a row
    assert 3 <= len(notebook.drawn) <= 12


def test_it_ends_with_its_time(notebook: PlayedNotebook) -> None:
    began = time.monotonic()
    Counter(10**9).display(0.3)
    assert 0.25 < time.monotonic() - began < 3


def test_what_does_not_change_is_not_drawn_again(notebook: PlayedNotebook) -> None:
    still = Counter(10**9)
    still.view = lambda rows=20: NotebookView("still", "rests")  # type: ignore[method-assign]
    still.display(0.6)
    assert len(notebook.drawn) == 1


def test_an_interrupt_ends_it_without_an_error(notebook: PlayedNotebook) -> None:
    def interrupt(number: int) -> None:
        if number == 2:
            raise KeyboardInterrupt

    notebook.on_drawing = interrupt
    Counter(10**9).display()
    assert len(notebook.drawn) >= 2


def test_an_error_is_raised_with_the_last_drawing_there(notebook: PlayedNotebook) -> None:
    counter = Counter(3, RemoteError("over"))
    with pytest.raises(RemoteError, match="over"):
        counter.display()
    assert "3 waits" in notebook.drawn[-1]


def test_only_so_many_rows_can_be_asked_for(notebook: PlayedNotebook) -> None:
    counter = Counter(1)
    counter.display(rows=10**9)
    assert set(counter.asked) == {100}


def test_without_ipython_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    with pytest.raises(ConfigError, match="needs IPython") as refused:
        Counter(1).display()
    assert "pip install ipykernel" in refused.value.hint
    assert repr(Counter(1)) == "<counter: counts, 0 waits, columns n>"
    assert "<th>n</th>" in Counter(1)._repr_html_()


def test_outside_of_a_notebook_it_says_so() -> None:
    pytest.importorskip("IPython")
    with pytest.raises(ConfigError, match="outside of one"):
        Counter(1).display()

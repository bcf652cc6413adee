"""A live display in a real kernel: one output of a cell, which is drawn anew and ends with an
interrupt.
"""

from __future__ import annotations

import nbclient
import nbformat
import pytest
from nbformat import v4

LIVE = """
import threading, time, _thread
from penstock.notebook.live import Live
from penstock.notebook.view import NotebookView

class Clock(Live):
    seen = 0

    def view(self, rows=20):
        return NotebookView("clock", "runs", [f"{self.seen} ticks"], ["n"], [[self.seen]])

    def _await_change(self, seconds):
        time.sleep(seconds)
        self.seen += 1
        return self.seen < 3
"""


@pytest.mark.slow
def test_one_output_is_drawn_anew_until_the_end_or_an_interrupt() -> None:
    cells = [
        v4.new_code_cell(LIVE),
        v4.new_code_cell("Clock().display()"),
        v4.new_code_cell(
            "Clock.seen = -10**9\n"
            "threading.Timer(0.5, _thread.interrupt_main).start()\n"
            "Clock().display()"
        ),
    ]
    notebook = v4.new_notebook(cells=cells)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    (ended,) = notebook.cells[1].outputs
    assert ended.output_type == "display_data"
    assert "clock</b>: runs, 3 ticks" in ended.data["text/html"]
    assert ended.data["text/plain"] == "<clock: runs, 3 ticks, columns n>"
    (interrupted,) = notebook.cells[2].outputs
    assert "-99" in interrupted.data["text/html"]

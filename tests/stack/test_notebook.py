"""The notebook of the documentation, executed: results, subscriptions and live tables are displayed."""

from __future__ import annotations

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

from penstock.mesh.running import RunningMesh
from tests.documents import ROOT

NOTEBOOK = ROOT / "docs" / "tutorials" / "live-rows.ipynb"


@pytest.fixture
def shown(mesh: RunningMesh, tmp_path: Path) -> dict[str, str]:
    """What each cell shows in the end, by the cell's id."""
    (tmp_path / ".penstock").symlink_to(mesh.layout.root)
    text = NOTEBOOK.read_text(encoding="utf-8").replace("http://127.0.0.1:7700", mesh.gateway_url)
    notebook = nbformat.reads(text, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    return {
        cell.id: "".join(part.data.get("text/html", "") for part in cell.outputs if "data" in part)
        for cell in notebook.cells
        if cell.cell_type == "code"
    }


def test_results_subscriptions_and_tables_are_displayed(shown: dict[str, str]) -> None:
    assert "<th>celsius</th>" in shown["result"] and "<td>180.5</td>" in shown["result"]
    assert "subscription to stream kiln.hottest</b>: connected, 0 rows" in shown["subscribe"]
    # one output, drawn anew
    assert shown["display"].count("<table") == 1
    # as many as have closed in these seconds
    assert re.search(r": connected, [1-5] rows, the last at 20", shown["display"])
    assert "<td>2026-03-01 09:00:00.000</td><td>5</td><td>181.25</td>" in shown["display"]
    assert "live table kiln/ovens</b>: live, " in shown["table"]
    assert shown["table"].count("<tr>") == 6
    assert re.search(r"subscription to stream kiln.hottest</b>: closed, [1-5] rows", shown["end"])

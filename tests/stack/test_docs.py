"""Every example of the documentation, run from top to bottom against a mesh."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.mesh.running import RunningMesh
from tests.documents import ROOT, Reader, blocks, databases

#: pages whose examples need a mesh of another kind, and the test that runs them
ELSEWHERE = {"ha-tables.md": "test_ha_tables.py", "stream-tables.md": "test_ha_tables.py"}
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if blocks(p) and p.name not in ELSEWHERE),
]


@pytest.fixture
def client(mesh: RunningMesh) -> Iterator[penstock.Connection]:
    with penstock.connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as connection:
        yield connection


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", DOCUMENTS, ids=[p.name for p in DOCUMENTS])
def test_examples_do_what_they_say(
    mesh: RunningMesh, client: penstock.Connection, path: Path, tmp_path: Path
) -> None:
    if any("curl " in block.text for block in blocks(path)) and shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    (tmp_path / ".penstock").symlink_to(mesh.layout.root)
    reader = Reader(mesh, client, path, tmp_path)
    made = databases(path)
    try:
        for block in blocks(path):
            reader.run(block)
    finally:
        reader.close()
        for name in made:
            client.execute(f"DROP DATABASE IF EXISTS {name}")

"""What the README begins with; `tests/dist/test_readme.py` runs it."""

from __future__ import annotations

import tomllib

from tests.documents import ROOT, commands


def test_three_commands_install_start_and_ask() -> None:
    project = tomllib.loads((ROOT / "deploy/mesh/pyproject.toml").read_text(encoding="utf-8"))
    name = project["project"]["name"]
    install, start, ask = commands(ROOT / "README.md")
    assert install == f"pip install {name}"
    assert [start.split()[:2], ask.split()[:2]] == [["penstock", "up"], ["penstock", "sql"]]

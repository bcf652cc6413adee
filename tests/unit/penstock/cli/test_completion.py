"""penstock completion: scripts for shells, and what Tab offers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.cli.completion import complete_table, matching_tables
from penstock.cli.prompt.names import Names


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    done = CliRunner().invoke(app, ["completion", shell])
    assert done.exit_code == 0
    assert f"_PENSTOCK_COMPLETE=complete_{shell}" in done.stdout


def test_the_script_is_one_that_bash_can_read() -> None:
    script = CliRunner().invoke(app, ["completion", "bash"]).stdout
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_tab_offers_commands() -> None:
    asked = {"_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": "penstock fo", "COMP_CWORD": "1"}
    program = "import sys; sys.argv = ['penstock']; from penstock.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["follow"], done.stderr


def _ask(sql: str, parameters: dict[str, Any] | None) -> Sequence[tuple[Any, ...]]:
    if "ins_databases" in sql:
        return [("power",), ("plant",)]
    assert parameters == {"database": "power"}
    return [("meters",), ("meadows",), ("pumps",)]


def test_tab_offers_databases_then_tables() -> None:
    names = Names(_ask)
    assert matching_tables(names, "") == ["power.", "plant."]
    assert matching_tables(names, "po") == ["power."]
    assert matching_tables(names, "power.me") == ["power.meters", "power.meadows"]


def test_without_a_mesh_nothing_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATA_DIR", str(tmp_path))
    assert complete_table("power.") == []

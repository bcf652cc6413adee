"""follow and import on a pseudo-terminal: what only a terminal gets."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import CatalogError
from tests.unit.penstock.cli.data_kit import Deployment, deployment

METERS = pa.schema([("ts", pa.timestamp("ms", "UTC")), ("volts", pa.float64())])
ROW = {"tbname": "m1", "op": "upsert", "ts": 1_772_355_600_000, "volts": 220.5}


def _answer(sql: str) -> pa.Table:
    if sql.startswith("CREATE"):
        return pa.table({"affected_rows": [0]})
    if "ins_databases" in sql:
        return pa.table({"name": ["power"], "precision": ["ms"]})
    if sql == "SELECT * FROM `power`.`meters` LIMIT 0":
        return METERS.empty_table()
    raise CatalogError("there is no table", code="E_NO_TABLE")


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Deployment]:
    with deployment(_answer, tmp_path) as made:
        yield made


def on_a_terminal(mesh: Deployment, *words: str, question: str = "", reply: str = "") -> str:
    """Run a command until it ends and return what it showed; *reply* to its *question*."""
    own, other = pty.openpty()
    login = ("--url", mesh.url, "--password-file", str(mesh.password))
    command = [sys.executable, "-m", "penstock.cli", *words, *login]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=environment):
        os.close(other)
        shown = ""
        while True:
            try:
                shown += os.read(own, 65_536).decode(errors="replace")
            except OSError:  # nobody has the other end any more
                break
            if question and question in shown:
                os.write(own, reply.encode())
                question = ""
    os.close(own)
    return shown.replace("\r", "")


def test_rows_come_as_a_table(mesh: Deployment) -> None:
    mesh.messages = [{"type": "rows", "rows": [ROW], "token": "t1"}]
    shown = on_a_terminal(mesh, "follow", "power.meters", "-n", "1")
    assert "tbname  op      ts                        volts\n" in shown
    assert "m1      upsert  2026-03-01 09:00:00.000Z  220.5\n" in shown


@pytest.mark.parametrize(("reply", "made"), [("n\n", False), ("y\n", True)])
def test_a_table_is_made_only_if_one_agrees(
    mesh: Deployment, tmp_path: Path, reply: str, made: bool
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("ts,volts\n2026-03-01T09:00:00Z,220.5\n", encoding="utf-8")
    shown = on_a_terminal(
        mesh, "import", str(file), "power.fresh", question="make it? [y/N]", reply=reply
    )
    created = [sql for sql in mesh.asked if sql.startswith("CREATE")]
    assert bool(created) is made and len(mesh.writes) == int(made)
    assert shown.index("DOUBLE") < shown.index("make it?")
    assert ("1 row in power.fresh" in shown) is made

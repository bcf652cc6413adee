"""penstock sql and export, against the session's mesh."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from penstock.cli.export_file import slices
from penstock.client.connection import connect
from penstock.mesh.running import RunningMesh

START = 1_767_225_600_000


def penstock(mesh: RunningMesh, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PENSTOCK_DATA_DIR": str(mesh.layout.root), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "penstock.cli", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_export_has_every_row_in_order_of_time(mesh: RunningMesh, tmp_path: Path) -> None:
    with connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
        client.execute("CREATE DATABASE cli_export")
        client.execute(
            "CREATE STABLE cli_export.meters (ts TIMESTAMP, v INT) TAGS (loc VARCHAR(8))"
        )
        for child in ("a", "b", "c"):
            rows = ", ".join(f"({START + i * 1000}, {i})" for i in range(100))
            client.execute(
                f"INSERT INTO cli_export.{child} USING cli_export.meters TAGS ('{child}') VALUES {rows}"
            )
        pieces = list(slices(client, "cli_export.meters", most=60))
        assert (
            sum(piece.num_rows for piece in pieces) == 300
            and max(piece.num_rows for piece in pieces) <= 60
        )

    done = penstock(mesh, "export", "cli_export.meters", str(tmp_path / "m.parquet"))
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "m.parquet")
    assert table.num_rows == 300 and table["ts"].to_pylist() == sorted(table["ts"].to_pylist())
    assert sum(table["v"].to_pylist()) == 3 * sum(range(100))
    assert [path.name for path in tmp_path.iterdir()] == ["m.parquet"]

    shown = penstock(mesh, "sql", "SELECT count(*) AS n FROM cli_export.meters")
    assert shown.returncode == 0 and shown.stdout.split() == ["n", "---", "300"]
    script = tmp_path / "count.sql"
    script.write_text("SELECT count(*) AS n FROM cli_export.meters", encoding="utf-8")
    shown = penstock(mesh, "sql", "-f", str(script), "-o", "csv")
    assert shown.returncode == 0 and shown.stdout == "n\n300\n"


def test_errors_are_short_and_say_where(mesh: RunningMesh, tmp_path: Path) -> None:
    wrong = penstock(mesh, "sql", "SELEKT 1")
    assert wrong.returncode == 1 and "E_SYNTAX" in wrong.stderr and "Traceback" not in wrong.stderr
    absent = penstock(mesh, "export", "cli_export.nothing", str(tmp_path / "x.parquet"))
    assert absent.returncode == 1 and not list(tmp_path.iterdir())

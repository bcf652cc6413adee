"""penstock import, follow and top, against the session's mesh: rows of a file come out again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli import app
from penstock.client.connection import connect
from penstock.mesh import doctor
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import CONTAINERS
from tests.stack.names import unique

READINGS = """\
ts,volts,meter,site
2026-03-01T09:00:00Z,220.5,m1,Ulm
2026-03-01T09:00:01Z,,m2,"Bonn, south"
2026-03-01T10:00:02+01:00,221,m1,Ulm
"""


@pytest.fixture
def login(mesh: RunningMesh, tmp_path: Path) -> list[str]:
    password = tmp_path / "password"
    password.touch(mode=0o600)
    password.write_text(mesh.password)
    return ["--url", mesh.gateway_url, "--user", mesh.user, "--password-file", str(password)]


def penstock(*words: str) -> str:
    """Run a command in this process: a program of its own takes seconds to start."""
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.exception or done.output
    return done.stdout


@pytest.mark.timeout(240, func_only=True)
def test_a_file_goes_in_and_is_followed(
    mesh: RunningMesh, login: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "readings.csv"
    file.write_text(READINGS, encoding="utf-8")
    name = f"{unique('imported')}.meters"
    with connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
        client.execute(f"CREATE DATABASE {name.partition('.')[0]}")
        for _ in range(2):  # the second time nothing is written
            said = penstock(
                *("import", str(file), name, "--yes", "--tbname", "meter", "--tags", "site"), *login
            )
            assert said.startswith(f"3 rows in {name}")
        rows = client.query(f"SELECT tbname, volts, site FROM {name} ORDER BY ts").rows
        assert rows == [("m1", 220.5, "Ulm"), ("m2", None, "Bonn, south"), ("m1", 221.0, "Ulm")]
        for statement in (doctor.WAITING_EVENTS, doctor.NEWEST_DEAD_LETTERS):
            client.query(statement)

    followed = penstock("follow", name, "--from", "earliest", "--rows", "3", *login)
    found = [json.loads(line) for line in followed.splitlines()]
    assert {(r["op"], r["tbname"], r["ts"], r["volts"]) for r in found} == {
        ("upsert", "m1", "2026-03-01 09:00:00.000Z", 220.5),
        ("upsert", "m2", "2026-03-01 09:00:01.000Z", None),
        ("upsert", "m1", "2026-03-01 09:00:02.000Z", 221.0),
    }
    chosen = ("--where", "volts > 220.7", "--rows", "1")
    followed = penstock("follow", name, "--from", "earliest", *chosen, *login)
    assert [(r["tbname"], r["volts"]) for r in map(json.loads, followed.splitlines())] == [
        ("m1", 221.0)
    ]


@pytest.mark.skipif(CONTAINERS, reason="containers: processes and logs are those of this machine")
@pytest.mark.timeout(240, func_only=True)
def test_top_and_logs_know_the_services(mesh: RunningMesh) -> None:
    place = ("--data-dir", str(mesh.layout.root))
    shown = penstock("top", "--once", "--seconds", "0.5", *place)
    assert all(f"\n{service} " in shown for service in ("gateway", "store", "spark"))
    said = penstock("logs", "--lines", "200", *place)
    assert "gateway" in said and "kafka" in said

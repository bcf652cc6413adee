"""What an installation has, told without installing one: `make dist` does that."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

from penstock import installed
from penstock.cli.lazy import OF_A_MESH, PLACES
from penstock.errors import ConfigError

PROJECT = tomllib.loads(Path("pyproject.toml").read_text())
MESH_PROJECT = tomllib.loads(Path("deploy/mesh/pyproject.toml").read_text())
OWN = ("penstock", *installed.SERVICES)

#: modules that Python has on Linux and macOS alone
POSIX = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"}
#: loads all of the client where only what its distribution asks for is there
CLIENT_ALONE = """
import importlib, pkgutil, sys
allowed = set(sys.stdlib_module_names) | {"penstock", "numpy", "pyarrow", "tenacity", "urllib3", "websockets"}
posix = set(sys.argv[1:])

class Guard:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        # Python's own modules do without those of Linux and macOS on Windows; so must ours
        foreign = top not in allowed and not top.startswith("_")
        if foreign or (top in posix and ours(sys._getframe(1))):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def ours(frame):
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and "/penstock/" in frame.f_code.co_filename

sys.meta_path.insert(0, Guard())
import penstock
for name in penstock.__all__:
    getattr(penstock, name)
for package in ("penstock.client", "penstock.dbapi", "penstock.compat"):
    found = importlib.import_module(package)
    for module in pkgutil.walk_packages(found.__path__, f"{package}."):
        importlib.import_module(module.name)
import penstock.command
"""


def names(requirements: list[str], system: str = "linux") -> set[str]:
    """Return the distributions that *requirements* name on a system."""
    found = set()
    for requirement in requirements:
        name, _, marker = requirement.partition(";")
        if not marker or f"'{system}'" in marker:
            found.add(re.split(r"[\[<>=!~ ]", name)[0].lower().replace("_", "-"))
    return found


def needed(distributions: set[str]) -> set[str]:
    """Return *distributions* and what they need, as those installed here say; optional parts and
    other systems left out.
    """
    found: set[str] = set()
    waiting = set(distributions)
    while waiting:
        name = waiting.pop()
        found.add(name)
        needs = importlib.metadata.requires(name) or []
        waiting |= names([n for n in needs if "extra ==" not in n]) - found
    return found


@pytest.mark.parametrize(("system", "most"), [("linux", 6), ("darwin", 6), ("win32", 7)])
def test_the_client_is_a_few_distributions(system: str, most: int) -> None:
    asked = names(PROJECT["project"]["dependencies"], system)
    assert len(needed(asked) | {"penstock"}) == most <= 10


def test_all_of_the_client_loads_with_those_alone() -> None:
    subprocess.run([sys.executable, "-c", CLIENT_ALONE, *POSIX], check=True)


def test_the_commands_of_a_client_use_nothing_that_windows_lacks() -> None:
    graph = grimp.build_graph(
        "penstock", include_external_packages=True, exclude_type_checking_imports=True
    )
    commands = {p.module for p in PLACES.values()} - set(OF_A_MESH)
    assert commands >= {"query", "follow", "import_file", "export", "completion"}
    reached = {
        name
        for command in commands
        for name in graph.find_upstream_modules(f"penstock.cli.{command}")
    }
    assert "penstock.cli.prompt.loop" in reached
    assert reached & POSIX == set()


def test_what_is_missing_is_told_with_the_command_that_brings_it() -> None:
    with pytest.raises(ConfigError, match="not installed: nothing_like_it") as raised:
        installed.require(("json", "nothing_like_it"), "polars")
    assert raised.value.hint == f"pip install 'penstock[polars]=={installed.version()}'"
    assert installed.load("polars", "polars").__name__ == "polars"


def test_a_mesh_without_its_services_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    installed.require_mesh()
    monkeypatch.setattr(installed, "MESH", ("uvloop_like", "json"))
    with pytest.raises(ConfigError, match="the mesh is not installed here") as raised:
        installed.require_mesh(("sys", "spark_like"))
    assert raised.value.detail == "missing: uvloop_like, spark_like"
    assert f"pip install 'penstock-mesh=={installed.version()}'" in raised.value.hint


def test_the_services_of_a_wheel_are_found_before_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert installed.service_path("/there") == {}
    packed = tmp_path / "penstock_mesh"
    packed.mkdir()
    (packed / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert installed.service_path("") == {"PYTHONPATH": str(packed)}
    both = installed.service_path("/there")
    assert both == {"PYTHONPATH": f"{packed}{os.pathsep}/there"}
    installed.require_mesh()
    installed.require_mesh()
    assert sys.path[0] == str(packed) and sys.path.count(str(packed)) == 1


def test_each_import_of_the_mesh_is_looked_for_before_a_start() -> None:
    graph = grimp.build_graph(
        *OWN, include_external_packages=True, exclude_type_checking_imports=True
    )
    outside = {
        name
        for module in graph.modules
        if module.partition(".")[0] in OWN and not module.startswith("penstock.sqlalchemy")
        for name in graph.find_modules_directly_imported_by(module)
        if name not in sys.stdlib_module_names and name.partition(".")[0] not in OWN
    }
    client = {"numpy", "pyarrow", "tenacity", "urllib3", "websockets"}
    assert outside - client <= {*installed.CLI, *installed.MESH, *installed.SPARK}
    jobs = {m for m in graph.modules if m.startswith("spark_jobs")}
    assert all(graph.find_modules_that_directly_import(name) <= jobs for name in installed.SPARK)
    assert set(installed.REMOTE_TABLES) <= set(installed.MESH)


def test_both_distributions_have_one_version() -> None:
    version = PROJECT["project"]["version"]
    assert MESH_PROJECT["project"]["version"] == version
    pins = [
        *MESH_PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["mesh"],
    ]
    assert all(pin.endswith(f"=={version}") for pin in pins)
    assert MESH_PROJECT["project"]["scripts"] == PROJECT["project"]["scripts"]


@pytest.mark.parametrize("arguments", [["--version"], ["up"]])
def test_the_command_works_where_its_extra_is_missing(arguments: list[str]) -> None:
    script = (
        "import sys; sys.modules['typer'] = None; sys.argv = ['penstock', *sys.argv[1:]]\n"
        "from penstock.command import main; main()"
    )
    ran = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True)
    if arguments == ["--version"]:
        assert (ran.returncode, ran.stdout) == (0, f"penstock {installed.version()}\n")
    else:
        assert ran.returncode == 78
        assert "pip install 'penstock[cli]" in ran.stderr and "Traceback" not in ran.stderr

"""What `.ci/dist` has built, and clean environments to install it into."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

DIST = Path("dist").absolute()
UV = Path(sys.executable).parent / "uv"


def own_modules() -> dict[str, str]:
    """Return this process's variables, but for the one by which its modules would be found before
    those of an environment.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def uv_environment() -> dict[str, str]:
    """Return what uv needs to know of this machine: it does not read pip's configuration."""
    given = own_modules()
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
    )
    index = given.get("PIP_INDEX_URL") or asked.stdout.strip()
    if index:
        given.setdefault("UV_DEFAULT_INDEX", index)
    return given | {"UV_SYSTEM_CERTS": "1", "UV_HTTP_TIMEOUT": "180"}


def wheel(name: str) -> Path:
    """Return the wheel of a distribution. Asked for by name, uv would take an earlier build of the
    same version from its cache.
    """
    return next(DIST.glob(f"{name}-*.whl"))


def client_with(extras: str = "") -> str:
    """Return the requirement that stands for the built client with *extras*."""
    named = f"penstock[{extras}]" if extras else "penstock"
    return f"{named} @ {wheel('penstock').as_uri()}"


def built() -> tuple[str, str]:
    """Return the requirements that stand for both distributions as they were built."""
    return client_with(), f"penstock-mesh @ {wheel('penstock_mesh').as_uri()}"


@dataclass(frozen=True)
class Environment:
    """A virtual environment with nothing in it but what was asked for."""

    root: Path

    def install(self, *requirements: str) -> None:
        python = ["--python", str(self.root / "bin" / "python")]
        subprocess.run(
            [UV, "pip", "install", "--quiet", *python, *requirements],
            env=uv_environment(),
            check=True,
        )

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment where nothing of the checkout is found."""
        return subprocess.run(
            [self.root / "bin" / program, *arguments],
            capture_output=True,
            text=True,
            cwd=self.root,
            env=own_modules(),
            # nothing is compiled yet, and a busy machine is slow, not wrong
            timeout=300,
        )

    @property
    def packages(self) -> Path:
        return next(self.root.glob("lib/python3*/site-packages"))

    @property
    def distributions(self) -> list[str]:
        return sorted(p.name.split("-")[0] for p in self.packages.glob("*.dist-info"))


def made(root: Path, *requirements: str) -> Environment:
    """Return a new environment with *requirements* in it."""
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, root], check=True)
    found = Environment(root)
    if requirements:
        found.install(*requirements)
    return found


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return made(tmp_path_factory.mktemp("client") / "venv", client_with())


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The client with its command."""
    return made(tmp_path_factory.mktemp("command") / "venv", client_with("cli"))


@pytest.fixture(scope="session")
def cached(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what uv needs once it has all packages of the mesh in its cache.

    It asks no index from then on: there are some from which it keeps nothing, and pyspark's wheel,
    which is made from its source archive, costs a minute and gigabytes each time.
    """
    made(tmp_path_factory.mktemp("cached") / "venv", *built())
    return uv_environment() | {"UV_OFFLINE": "1"}

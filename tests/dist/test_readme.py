"""The commands that the README begins with, in an environment that has nothing yet."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dist.conftest import UV, built, made
from tests.documents import ROOT, commands

#: what a reader might type at the prompt that the last command opens; through a pipe it is read
TYPED = """
CREATE DATABASE hello;
CREATE TABLE hello.plant (ts TIMESTAMP, volts DOUBLE);
INSERT INTO hello.plant VALUES ('2026-03-01 09:00:05', 219.5) ('2026-03-01 09:00:35', 222.5);
SELECT count(*) AS n, avg(volts) AS volts FROM hello.plant;
"""


class Newcomer:
    """Somebody who types commands in a folder and an environment of their own.

    `pip` is uv's: it takes what this machine has fetched before. Both distributions are those that
    were built, whatever an index has under their names.
    """

    def __init__(self, folder: Path, cached: dict[str, str]) -> None:
        self._cached = cached
        self._home = folder / "home"
        self._home.mkdir()
        self._environment = made(folder / "venv")
        pip = self._bin / "pip"
        pip.write_text(f'#!/bin/sh\nexec {UV} pip "$@"\n')
        pip.chmod(0o755)
        self._built = folder / "built.txt"
        self._built.write_text("\n".join(built()) + "\n")

    @property
    def _bin(self) -> Path:
        return self._environment.root / "bin"

    def types(self, command: str, more: str = "", seconds: float = 600) -> str:
        """Run one command, with *more* as its input, and return what it prints."""
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            input=more,
            capture_output=True,
            text=True,
            cwd=self._home,
            env=self._variables(),
            timeout=seconds,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr[-4000:]}"
        return ran.stdout

    def _variables(self) -> dict[str, str]:
        inherited = {k: v for k, v in self._cached.items() if not k.startswith("PENSTOCK_")}
        return inherited | {
            "PATH": f"{self._bin}{os.pathsep}{inherited['PATH']}",
            "VIRTUAL_ENV": str(self._environment.root),
            "UV_CONSTRAINT": str(self._built),
            # another mesh may run on this machine
            "PENSTOCK_PORT_BASE": "auto",
        }


@pytest.fixture
def newcomer(tmp_path: Path, cached: dict[str, str]) -> Iterator[Newcomer]:
    found = Newcomer(tmp_path, cached)
    yield found
    found.types("if command -v penstock >/dev/null; then penstock down; fi")


@pytest.mark.timeout(1500)
def test_the_readmes_commands_give_a_mesh_that_answers(newcomer: Newcomer) -> None:
    *first, prompt = commands(ROOT / "README.md")
    for command in first:
        newcomer.types(command)
    said = newcomer.types(prompt, TYPED)
    assert said.split()[-2:] == ["2", "221.0"], said

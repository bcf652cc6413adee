"""The list of commands is the list of commands, and help imports none of them."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys

import typer
from typer.testing import CliRunner

from penstock.cli import app
from penstock.cli.lazy import PLACES


def test_every_command_has_its_place_and_every_place_its_command() -> None:
    for module in {place.module for place in PLACES.values()}:
        importlib.import_module(f"penstock.cli.{module}")
    commands = typer.main.get_group(app).commands
    assert commands.keys() == PLACES.keys()
    for name, command in commands.items():
        # a group is of the module that its commands are of
        one = next(iter(getattr(command, "commands", {name: command}).values()))
        assert one.callback.__module__ == f"penstock.cli.{PLACES[name].module}", name
        assert 10 < len(PLACES[name].summary) <= 60, name


def test_help_lists_all_and_imports_none() -> None:
    script = (
        "import sys; sys.argv = ['penstock', '--help']\n"
        "from penstock.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('pyarrow', 'polars', 'pydantic', 'urllib3', 'sqlglot', 'rich')])"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    *shown, loaded = out.stdout.splitlines()
    assert loaded == "[]"
    text = "\n".join(shown)
    assert all(f"  {name} " in text and place.summary in text for name, place in PLACES.items())


def test_a_command_that_is_none_is_named() -> None:
    result = CliRunner().invoke(app, ["starts"])
    assert result.exit_code == 2 and "No such command 'starts'" in result.output


def test_a_command_has_its_own_help() -> None:
    result = CliRunner().invoke(app, ["sql", "--help"])
    assert result.exit_code == 0 and "Example: penstock sql" in result.output


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"penstock {importlib.metadata.version('penstock')}\n"

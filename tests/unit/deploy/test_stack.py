"""What `deploy/stack` and the Makefile make of variables that switch something on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.documents import ROOT


def compose(directory: Path, **variables: str) -> list[str]:
    """Return the arguments that `deploy/stack ps` gives to Docker."""
    docker = directory / "docker"
    docker.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    docker.chmod(0o755)
    environment = {"PATH": f"{directory}:{os.environ['PATH']}", **variables}
    run = subprocess.run(
        [ROOT / "deploy/stack", "ps"], env=environment, check=True, capture_output=True, text=True
    )
    return run.stdout.splitlines()


@pytest.mark.parametrize(
    ("variables", "profiles", "replicated"),
    [
        ({}, [], False),
        ({"HA": "0", "STANDBY": "0"}, [], False),
        ({"HA": "0", "STANDBY": "1"}, ["standby"], False),
        ({"HA": "", "STANDBY": "1"}, ["standby"], False),
        ({"HA": "1", "STANDBY": "1"}, ["standby", "ha"], True),
        # the profile `ha` is in the file of variables
        ({"HA": "1", "STANDBY": "0"}, [], True),
    ],
)
def test_a_profile_is_on_when_its_variable_is_1(
    tmp_path: Path, variables: dict[str, str], profiles: list[str], replicated: bool
) -> None:
    given = compose(tmp_path, **variables)
    named = [word for before, word in zip(given, given[1:], strict=False) if before == "--profile"]
    assert named == profiles
    assert ("deploy/compose/ha.env" in given) == replicated


@pytest.mark.parametrize(
    ("target", "switch", "mark"),
    [
        ("stack", "LONG", "not long"),
        ("test-security", "LONG", "not long"),
        ("demo-federation", "KEEP_UP", "--keep-up"),
    ],
)
def test_a_switch_of_make_is_on_when_it_is_1(target: str, switch: str, mark: str) -> None:
    shown = {}
    for value in ("", "0", "1"):
        run = subprocess.run(
            ["make", "--dry-run", target, f"{switch}={value}"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        shown[value] = mark in run.stdout
    assert shown[""] == shown["0"] != shown["1"]

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.setup import java
from penstock.setup.java import Java, find_java, spark_java_home
from penstock.setup.redis_server import find_redis_server


def runtime(home: Path, version: str, script: str = "") -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return executable


@pytest.fixture(autouse=True)
def _no_cache():
    find_java.cache_clear()
    yield
    find_java.cache_clear()


@pytest.mark.parametrize(
    ("there", "best"),
    [
        (("1.8.0_392", "21.0.2"), 1),
        (("17.0.15", "25.0.2", "25.0.1"), 1),
        (("17.0.15", "27", "21"), 2),
        (("27", "28"), 0),
    ],
)
def test_the_newest_that_is_not_newer_than_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: tuple[str, ...], best: int
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = [runtime(tmp_path / f"java{i}", version) for i, version in enumerate(there)]
    monkeypatch.setattr(java, "_candidates", lambda: iter([tmp_path / "none/bin/java", *found]))
    assert find_java().executable == found[best]


@pytest.mark.parametrize(("named", "best"), [("17.0.15", 0), ("11.0.1", 1)])
def test_the_one_that_is_named_comes_first_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, best: int
) -> None:
    found = [runtime(tmp_path / "named", named), runtime(tmp_path / "newer", "25.0.2")]
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    monkeypatch.setattr(java, "_candidates", lambda: iter(found))
    assert find_java().executable == found[best]


def test_none_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = runtime(tmp_path / "old", "11.0.1")
    monkeypatch.setattr(java, "_candidates", lambda: iter([old]))
    with pytest.raises(ConfigError, match="version 11"):
        find_java()


def test_spark_gets_a_java_without_its_module(tmp_path: Path) -> None:
    trimmed = Java(runtime(tmp_path / "jre", "25", 'echo "$@"'), 25)
    home = spark_java_home(trimmed, tmp_path / "wrapper")
    said = subprocess.run(
        [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "-Xmx1g -cp a b\n"


def test_redis_server_is_there() -> None:
    assert find_redis_server().is_file()

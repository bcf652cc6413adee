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


def test_first_new_enough_runtime_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime(tmp_path / "old", "1.8.0_392")
    new = runtime(tmp_path / "new", "21.0.2")
    monkeypatch.setattr(
        java,
        "_candidates",
        lambda: iter([tmp_path / "old/bin/java", tmp_path / "none/bin/java", new]),
    )
    assert find_java() == Java(new, 21)


def test_none_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = runtime(tmp_path / "old", "11.0.1")
    monkeypatch.setattr(java, "_candidates", lambda: iter([old]))
    with pytest.raises(ConfigError, match="version 11"):
        find_java()


def test_spark_gets_a_wrapper_on_a_trimmed_runtime(tmp_path: Path) -> None:
    trimmed = Java(runtime(tmp_path / "jre", "25", 'echo "$@"'), 25)
    home = spark_java_home(trimmed, tmp_path / "wrapper")
    said = subprocess.run(
        [home / "bin" / "java", "-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "-Xmx1g -cp a b\n"


def test_spark_uses_a_whole_runtime_as_it_is(tmp_path: Path) -> None:
    whole = Java(runtime(tmp_path / "jre", "21", "echo jdk.incubator.vector@21"), 21)
    assert spark_java_home(whole, tmp_path / "wrapper") == whole.home


def test_redis_server_is_there() -> None:
    assert find_redis_server().is_file()

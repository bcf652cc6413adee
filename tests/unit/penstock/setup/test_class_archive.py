"""An archive of classes is made once, is one that Java can use, and is done without elsewhere."""

from __future__ import annotations

import gzip
import subprocess
import zipfile
from pathlib import Path

import pytest

from penstock.setup import class_archive
from penstock.setup.java import Java, find_java


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    # few classes are dumped soon; one of them is nowhere
    monkeypatch.setattr(
        class_archive, "_class_list", lambda: b"java/lang/Object\njava/lang/String\norg/x/Gone\n"
    )
    jar = tmp_path / "thing.jar"
    with zipfile.ZipFile(jar, "w") as made:
        made.writestr("nothing", "")
    return [jar]


def test_java_can_use_what_is_made(jars: list[Path]) -> None:
    java = find_java()
    assert class_archive.archive_options(java, jars) == []
    class_archive.make_archive(java, jars)
    archive, *others = class_archive.archive_options(java, jars)
    assert "-Xshare:auto" in others
    # with `on` Java does not start without its archive
    run = [java.executable, archive, "-Xshare:on", "-cp", jars[0], "-version"]
    used = subprocess.run(run, capture_output=True, text=True)
    assert used.returncode == 0, used.stdout + used.stderr


def test_other_jars_have_another_archive(jars: list[Path], tmp_path: Path) -> None:
    java = find_java()
    class_archive.make_archive(java, jars)
    assert class_archive.archive_options(java, [*jars, tmp_path / "more.jar"]) == []


def test_a_java_that_cannot_is_asked_once_and_starts_without(
    jars: list[Path], tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    program = tmp_path / "java"
    program.write_text(f"#!/bin/sh\necho >>{asked}\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    java = Java(program, 17)
    for _ in range(2):
        class_archive.make_archive(java, jars)
    assert asked.read_text() == "\n"
    assert class_archive.archive_options(java, jars) == []


def test_the_list_holds_the_broker() -> None:
    listed = gzip.decompress(
        Path(class_archive.__file__).with_name("broker.classes.gz").read_bytes()
    ).decode()
    assert {"kafka/Kafka", "kafka/server/KafkaRaftServer"} <= {
        line.split(" ")[0] for line in listed.splitlines()
    }

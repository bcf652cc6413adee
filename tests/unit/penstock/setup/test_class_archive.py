"""An archive of classes is made once, is one that Java can use, and is done without elsewhere."""

from __future__ import annotations

import gzip
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from penstock.setup import class_archive, jars, jvm_programs
from penstock.setup.java import Java, find_java
from penstock.setup.jvm_programs import JvmProgram


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JvmProgram:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    # few classes are dumped soon; one of them is nowhere
    monkeypatch.setattr(
        class_archive, "_class_list", lambda _: b"java/lang/Object\njava/lang/String\norg/x/Gone\n"
    )
    jar = tmp_path / "thing.jar"
    with zipfile.ZipFile(jar, "w") as made:
        made.writestr("nothing", "")
    return JvmProgram("thing", (str(jar),))


def test_java_can_use_what_is_made(program: JvmProgram) -> None:
    java = find_java()
    assert class_archive.archive_options(java, program) == []
    class_archive.make_archive(java, program)
    archive, *others = class_archive.archive_options(java, program)
    assert "-Xshare:auto" in others
    # with `on` Java does not start without its archive
    run = [java.executable, archive, "-Xshare:on", "-cp", program.joined, "-version"]
    used = subprocess.run(run, capture_output=True, text=True)
    assert used.returncode == 0, used.stdout + used.stderr


def test_other_jars_have_another_archive_and_the_former_is_removed(program: JvmProgram) -> None:
    java = find_java()
    class_archive.make_archive(java, program)
    before = class_archive.archive_options(java, program)
    with zipfile.ZipFile(program.class_path[0], "a") as jar:
        jar.writestr("more", "")
    assert class_archive.archive_options(java, program) == []
    class_archive.make_archive(java, program)
    assert class_archive.archive_options(java, program) not in ([], before)
    assert not Path(before[0].partition("=")[2]).exists()


def test_a_java_that_cannot_is_asked_once_and_starts_without(
    program: JvmProgram, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    java_program = tmp_path / "java"
    java_program.write_text(f"#!/bin/sh\necho >>{asked}\nexit 1\n", encoding="utf-8")
    java_program.chmod(0o755)
    java = Java(java_program, 17)
    for _ in range(2):
        class_archive.make_archive(java, program)
    assert asked.read_text() == "\n"
    assert class_archive.archive_options(java, program) == []


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("broker", {"kafka/Kafka", "kafka/server/KafkaRaftServer"}),
        (
            "spark",
            {
                "org/apache/spark/deploy/SparkSubmit",
                "org/apache/spark/sql/kafka010/KafkaBatchPartitionReader",
                "org/apache/kafka/clients/consumer/KafkaConsumer",
            },
        ),
    ],
)
def test_the_list_holds_the_program(name: str, classes: set[str]) -> None:
    listed = gzip.decompress(
        Path(class_archive.__file__).with_name(f"{name}.classes.gz").read_bytes()
    ).decode()
    assert classes <= {line.split(" ")[0] for line in listed.splitlines()}


def test_spark_is_found_as_its_launcher_finds_it(tmp_path: Path) -> None:
    """Java uses an archive only with the class path that it was made with."""
    shown = tmp_path / "command"
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    # the launcher is a Java program, too: it runs, and what it starts only shows its arguments
    java.write_text(
        f'#!/bin/sh\ncase "$*" in *launcher.Main*) exec {find_java().executable}'
        f' "$@";; esac\nprintf "%s\\n" "$@" >{shown}\n',
        encoding="utf-8",
    )
    java.chmod(0o755)
    program = jvm_programs.spark()
    submit = Path(program.class_path[-1]).parent.parent / "bin" / "spark-submit"
    ours = os.pathsep.join(map(str, jars.paths("spark")))
    subprocess.run(
        [submit, "--conf", f"spark.driver.extraClassPath={ours}", "nothing.py"],
        env={**os.environ, "JAVA_HOME": str(home)},
        check=True,
        capture_output=True,
    )
    arguments = shown.read_text().splitlines()
    assert arguments[arguments.index("-cp") + 1] == program.joined

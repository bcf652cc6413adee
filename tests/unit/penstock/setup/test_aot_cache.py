"""A cache is made from what a JVM recorded, is one that Java can use, and is done without else."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from penstock.errors import StateError
from penstock.setup import aot_cache, jars, jvm_programs
from penstock.setup.java import Java, find_java
from penstock.setup.jvm_programs import JvmProgram


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JvmProgram:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    jar = tmp_path / "thing.jar"
    with zipfile.ZipFile(jar, "w") as made:
        made.writestr("nothing", "")
    return JvmProgram("thing", (str(jar),))


def record(program: JvmProgram, directory: Path) -> list[str]:
    """Run Java as if it were the program, recording; return how it was started."""
    options = aot_cache.recording_options(program, directory)
    command = [str(find_java().executable), *options, "-cp", program.joined, "--version"]
    subprocess.run(command, check=True, capture_output=True)
    return command


def test_java_can_use_what_is_made(program: JvmProgram, tmp_path: Path) -> None:
    java = find_java()
    assert aot_cache.cache_options(java, program) == []
    assert not aot_cache.is_trained(java, [program])
    command = record(program, tmp_path)
    aot_cache.make_cache(java, program, command, aot_cache.recording(program, tmp_path))
    assert aot_cache.is_trained(java, [program])
    options = aot_cache.cache_options(java, program)
    # with `on` Java does not start without its cache
    run = [str(java.executable), *options, "-XX:AOTMode=on", "-cp", program.joined, "--version"]
    used = subprocess.run(run, capture_output=True, text=True)
    assert used.returncode == 0, used.stdout + used.stderr


def test_a_cache_that_java_cannot_use_says_nothing(program: JvmProgram, tmp_path: Path) -> None:
    java = find_java()
    command = record(program, tmp_path)
    aot_cache.make_cache(java, program, command, aot_cache.recording(program, tmp_path))
    options = [*aot_cache.cache_options(java, program), "-XX:+UseSerialGC"]
    other = ["--add-opens=java.base/java.lang=ALL-UNNAMED", "-cp", str(tmp_path), "--version"]
    used = subprocess.run([str(java.executable), *options, *other], capture_output=True, text=True)
    assert (used.returncode, used.stderr) == (0, "")
    assert "error" not in used.stdout


def test_other_jars_have_another_cache_and_the_former_is_removed(
    program: JvmProgram, tmp_path: Path
) -> None:
    java = find_java()
    learned = aot_cache.recording(program, tmp_path)
    aot_cache.make_cache(java, program, record(program, tmp_path), learned)
    before = aot_cache.cache_file(java, program)
    assert before.exists()
    with zipfile.ZipFile(program.class_path[0], "a") as jar:
        jar.writestr("more", "")
    assert aot_cache.cache_options(java, program) == []
    aot_cache.make_cache(java, program, record(program, tmp_path), learned)
    assert aot_cache.cache_file(java, program).exists()
    assert not before.exists()


def test_what_is_no_recording_is_an_error_that_says_why(
    program: JvmProgram, tmp_path: Path
) -> None:
    java = find_java()
    command = record(program, tmp_path)
    learned = aot_cache.recording(program, tmp_path)
    learned.write_bytes(b"not of a JVM")
    with pytest.raises(StateError, match="thing") as told:
        aot_cache.make_cache(java, program, command, learned)
    assert "thing.aotconf" in (told.value.detail or "")
    assert aot_cache.cache_options(java, program) == []


def test_an_older_java_has_nothing_to_learn(program: JvmProgram) -> None:
    assert aot_cache.is_trained(Java(Path("java"), 21), [program])


def test_a_java_that_does_not_start_is_an_error(program: JvmProgram, tmp_path: Path) -> None:
    java = find_java()
    with pytest.raises(StateError, match="thing"):
        aot_cache.make_cache(java, program, [str(tmp_path / "gone")], tmp_path / "thing.aotconf")


def test_spark_is_found_as_its_launcher_finds_it(tmp_path: Path) -> None:
    """Java uses a cache only with the class path that it was made with."""
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

"""The prompt of `penstock sql` through a pseudo-terminal, against a mesh."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.mesh.running import RunningMesh
from tests.stack.names import unique

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")


def _take_terminal() -> None:
    """Make standard input the terminal of this session, so that Ctrl-C reaches the program."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._own, other = pty.openpty()
        self.process = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(other)
        self.shown = ""
        #: how much of it earlier calls of `wait_for` have had
        self._read = 0

    def type(self, keys: str) -> None:
        os.write(self._own, keys.encode())

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Read until *text* has been shown since the last call."""
        end = time.monotonic() + seconds
        seen = self.shown[self._read :]
        while text not in seen:
            left = end - time.monotonic()
            ready, _, _ = select.select([self._own], [], [], max(left, 0))
            assert ready and left > 0, f"{text!r} did not come: {self.shown[-2000:]!r}"
            data = os.read(self._own, 65_536).decode(errors="replace")
            if "\x1b[6n" in data:  # where is the cursor? a terminal answers
                os.write(self._own, b"\x1b[1;1R")
            self.shown += _ESCAPES.sub("", data)
            seen = self.shown[self._read :]
        self._read += seen.index(text) + len(text)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(10)
        os.close(self._own)


@pytest.fixture
def database(mesh: RunningMesh) -> str:
    name = unique("prompt")
    with penstock.connect(mesh.gateway_url, user=mesh.user, password=mesh.password) as client:
        client.execute(f"CREATE DATABASE {name}")
        client.execute(f"CREATE TABLE {name}.ovens (ts TIMESTAMP, temperature DOUBLE)")
    return name


@pytest.fixture
def command(mesh: RunningMesh, tmp_path: Path) -> list[str]:
    password = tmp_path / "password"
    password.touch(mode=0o600)
    password.write_text(mesh.password)
    return [
        *(sys.executable, "-m", "penstock.cli", "sql", "--url", mesh.gateway_url),
        *("--user", mesh.user, "--password-file", str(password)),
    ]


@pytest.fixture
def terminal(command: list[str], tmp_path: Path) -> Iterator[Terminal]:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "TERM": "xterm"}
    made = Terminal(command, environment)
    yield made
    made.close()


@pytest.mark.timeout(240, func_only=True)
def test_a_session_at_the_prompt(terminal: Terminal, database: str, tmp_path: Path) -> None:
    terminal.wait_for("\\? lists commands")
    terminal.wait_for("penstock>")
    terminal.type(f"USE {database};\r")
    terminal.wait_for(f"{database}>")
    terminal.type("INSERT INTO ovens (ts, temperature)\r")
    terminal.type("VALUES ('2026-03-01 09:00:00', 20.5);\r")
    terminal.wait_for("1 row written")
    terminal.type("SELECT temperature FROM ov\t")
    terminal.wait_for("ens")  # what is typed already is not drawn again
    terminal.type(";\r")
    terminal.wait_for(" row")
    terminal.type("SELECT temprature FROM ovens;\r")
    terminal.wait_for("E_UNKNOWN_COLUMN")
    terminal.wait_for("did you mean temperature")
    terminal.type("SELECT 41 + 1 AS answer;\r")
    terminal.wait_for("(1 row)")
    terminal.type("\\watch 0.2\r")
    terminal.wait_for("every 0.2 s, Ctrl-C ends it")
    terminal.wait_for("(1 row)")
    terminal.wait_for("(1 row)")
    terminal.type("\x03")
    terminal.wait_for("stopped")
    terminal.type("\\q\r")
    assert terminal.process.wait(30) == 0
    assert "42" in terminal.shown
    assert "SELECT temperature FROM ovens;" in (tmp_path / "penstock" / "history").read_text()


@pytest.mark.timeout(240, func_only=True)
def test_commands_and_forms_at_the_prompt(terminal: Terminal, database: str) -> None:
    terminal.wait_for("penstock>")
    terminal.type("\\d\r")
    terminal.wait_for("which database?")
    terminal.type(f"\\c {database}\r")
    terminal.wait_for(f"{database}>")
    terminal.type("\\d\r")
    terminal.wait_for("ovens")
    terminal.type("\\d ovens\r")
    terminal.wait_for("TIMESTAMP")
    terminal.wait_for("(2 rows)")
    terminal.type("\\streams\r")
    terminal.wait_for("(0 rows)")
    terminal.type("\\timing\r")
    terminal.wait_for("times are shown")
    terminal.type("\\x\r")
    terminal.wait_for("rows are written as vertical")
    terminal.type("SELECT 40 + 2 AS answer; SELECT 43 AS question;\r")
    terminal.wait_for("--- row 1 ---")
    terminal.wait_for("answer  42")
    terminal.wait_for(" ms")
    terminal.wait_for("question  43")
    for form, shown in (
        ("csv", "a,b\n1,x"),
        ("json", '[\n  {"a": 1, "b": "x"}\n]'),
        ("ndjson", '{"a": 1, "b": "x"}'),
        ("markdown", "|   1 | x   |"),
    ):
        terminal.type(f"\\o {form}\r")
        terminal.type("SELECT 1 AS a, 'x' AS b;\r")
        terminal.wait_for(shown)
    terminal.type("exit\r")
    assert terminal.process.wait(30) == 0


def test_statements_come_through_a_pipe(command: list[str]) -> None:
    done = subprocess.run(
        [*command, "-o", "csv"],
        input="SELECT 1 AS a;\nSELECT 'x' AS b;\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "b\nx\n"), done.stderr

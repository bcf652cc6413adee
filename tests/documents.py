"""Fenced blocks of the documentation: found, run, and compared with what the text says comes out.

`sql`, `python` and `sh` blocks run; `result` (what comes out) or `error` (that it fails, and how)
belongs to the block before it. `…` stands for anything. Other blocks, and those marked `norun`, are
for people. Commands of a `sh wheels` block run in `make dist`, from the wheels. Addresses with default ports are replaced by those of the mesh at hand.
"""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import penstock
from penstock.mesh.running import RunningMesh

ROOT = Path(__file__).parent.parent
_FENCE = re.compile(r"^```([\w ]*)\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)
_DATABASE = re.compile(r"CREATE DATABASE (?:IF NOT EXISTS )?(\w+)", re.IGNORECASE)
_WRITES = re.compile(
    r"\b(INSERT|DELETE|FLUSH|CREATE (?:OR REPLACE )?STREAM|RESUME|RECALCULATE)\b", re.IGNORECASE
)
#: streams on streams go no deeper in any document
_DEPTH = 2


@dataclass(frozen=True)
class Block:
    """A block that runs, with the line it begins in and what is expected of it."""

    kind: str
    text: str
    line: int
    result: str | None = None
    error: str | None = None


def blocks(path: Path) -> list[Block]:
    """The blocks of a document that run, in order."""
    text = path.read_text(encoding="utf-8")
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        kind = match.group(1)
        body = match.group(2)
        if kind in ("result", "error"):
            before = found.pop()
            assert before.result is None and before.error is None, (
                f"{path.name}: two expectations for line {before.line}"
            )
            found.append(
                replace(before, result=body) if kind == "result" else replace(before, error=body)
            )
        elif kind in ("sql", "python", "sh"):
            found.append(Block(kind, body, text.count("\n", 0, match.start()) + 2))
    return found


def commands(path: Path) -> list[str]:
    """The commands of a document that `make dist` runs, one a line."""
    text = path.read_text(encoding="utf-8")
    return [
        line
        for match in _FENCE.finditer(text)
        if match.group(1) == "sh wheels"
        for line in match.group(2).splitlines()
    ]


def databases(path: Path) -> list[str]:
    """Names of the databases that a document makes."""
    return sorted({name for block in blocks(path) for name in _DATABASE.findall(block.text)})


class Reader:
    """Somebody who types in a document from top to bottom; runs in a directory where `.penstock` is
    the mesh's.
    """

    def __init__(
        self, mesh: RunningMesh, client: penstock.Connection, path: Path, directory: Path
    ) -> None:
        self._mesh = mesh
        self._client = client
        self._path = path
        self._directory = directory
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._written = False
        #: in order; names without a database mean the first
        self._made: list[str] = []

    def run(self, block: Block) -> None:
        """Run one block. Raises AssertionError with its place when something else comes out than
        the text says.
        """
        where = f"{self._path.relative_to(ROOT)}:{block.line}"
        text = self._here(block.text)
        try:
            if block.kind != "sql" or "SELECT" in text.upper():
                self._settle()
            out = {"sql": self._sql, "python": self._python, "sh": self._sh}[block.kind](text)
        except penstock.PenstockError as error:
            if block.error is None:
                raise AssertionError(f"{where}: {error}") from error
            _compare(where, block.error, str(error), begins=True)
            return
        assert block.error is None, f"{where}: this should fail with\n{block.error}"
        self._written = self._written or block.kind != "sql" or bool(_WRITES.search(text))
        self._made += [name for name in _DATABASE.findall(text) if name not in self._made]
        if block.result is not None:
            _compare(where, block.result, out)

    def close(self) -> None:
        """Close the connections that the document opened and never needed to close."""
        for value in self._names.values():
            if isinstance(value, penstock.Connection):
                value.close()

    def _here(self, text: str) -> str:
        mesh = self._mesh
        addresses = {
            "http://127.0.0.1:7700": mesh.gateway_url,
            "@127.0.0.1:7700": "@" + mesh.gateway_url.removeprefix("http://"),
            "ws://127.0.0.1:7700": mesh.gateway_url.replace("http", "ws"),
            "ws://127.0.0.1:7701": mesh.notifier_url,
            "127.0.0.1:7703": mesh.kafka_bootstrap,
            "127.0.0.1:7707": mesh.federation_url.removeprefix("ws://"),
            "grpc://127.0.0.1:7702": mesh.store_url,
        }
        for shown, real in addresses.items():
            text = text.replace(shown, real)
        return text

    def _settle(self) -> None:
        """Whoever reads a document takes longer to type the next line than rows take to go
        through.
        """
        if self._written:
            for name in self._made:
                self._client.drain(name, depth=_DEPTH)
            self._written = False

    def _sql(self, text: str) -> str:
        result = self._client.query(text, database=self._made[0] if self._made else None)
        lines = [" | ".join(result.columns), *(" | ".join(map(_shown, row)) for row in result.rows)]
        return "\n".join(lines) + "\n"

    def _python(self, text: str) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.chdir(self._directory):
            exec(compile(text, str(self._path), "exec"), self._names)
        return out.getvalue()

    def _sh(self, text: str) -> str:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        command = ["bash", "-euo", "pipefail", "-c", text]
        done = subprocess.run(
            command,
            cwd=self._directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, (
            f"{self._path.name}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done.stdout


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        text = value.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        return text.rstrip("0").rstrip(".")
    return str(value)


def _compare(where: str, expected: str, found: str, *, begins: bool = False) -> None:
    wanted = _lines(expected)
    lines = _lines(found)
    if begins:
        lines = lines[: len(wanted)]
    pairs = zip(wanted, lines, strict=False)
    same = len(wanted) == len(lines) and all(
        re.fullmatch(".*".join(map(re.escape, w.split("…"))), x) for w, x in pairs
    )
    assert same, f"{where}: expected\n{expected}\nfound\n{found}"


def _lines(text: str) -> list[str]:
    """Lines without blanks at their ends or around `|`, and without empty ones."""
    stripped = (re.sub(r"\s*\|\s*", " | ", line).strip() for line in text.splitlines())
    return [line for line in stripped if line]

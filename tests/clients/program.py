"""A program with one connection of a client, which does what it is told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients import environments


class ClientError(Exception):
    """An error that the client raised: its code and its message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Answer:
    """Rows as the client gave them, and the columns with the types that it names."""

    columns: list[list[str]]
    rows: list[list[Any]]


class Program:
    """Ask a client, one command at a time.

    A command is a line of words with tabs between them, an answer is a line of JSON. The first
    answer comes when the client is connected.
    """

    def __init__(
        self,
        words: Sequence[str],
        variables: dict[str, str],
        log: Path,
    ) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                words,
                env=variables,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
            )
        self.server = self._read()

    @classmethod
    def start(cls, client: str, options: dict[str, Any], log: Path) -> Program:
        """Connect with a client that has a folder here."""
        if (environments.HERE / client / "package.json").exists():
            environments.node(client)
        words = [*environments.command(client), json.dumps(options)]
        return cls(words, environments.variables(client), log)

    def ask(self, *words: str) -> Any:
        """Return the answer to a command.

        Raises:
            ClientError: the client raised something.
        """
        assert self._process.stdin is not None
        assert not any("\t" in word or "\n" in word for word in words), words
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        return self._read()

    def query(self, sql: str, *values: str) -> Answer:
        """Return the rows of a query; values are `kind:text`."""
        return Answer(**self.ask("query", sql, *values))

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise AssertionError(f"the program ended: {self._log.read_text(encoding='utf-8')}")
        found = json.loads(line)
        if "error" in found:
            raise ClientError(str(found["error"]), found["message"])
        return found["answer"]

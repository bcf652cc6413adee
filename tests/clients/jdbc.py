"""Any JDBC driver, by a Java program with one connection that does what it is told."""

from __future__ import annotations

import subprocess
from typing import Any

from tests.clients import environments
from tests.clients.program import Answer, ClientError

#: the client's name in jars.lock → its class
DRIVERS = {
    "jdbc-taos-rs": "com.taosdata.jdbc.rs.RestfulDriver",
    "jdbc-taos-ws": "com.taosdata.jdbc.ws.WebSocketDriver",
    "jdbc-postgresql": "org.postgresql.Driver",
    "jdbc-flight-sql": "org.apache.arrow.driver.jdbc.ArrowFlightJdbcDriver",
}
_WHOLE = ("Byte", "Short", "Integer", "Long", "BigInteger", "UnsignedLong")


class Jdbc:
    """Ask a driver, one command at a time."""

    def __init__(self, client: str, url: str) -> None:
        """Connect; skips where no registry serves the driver.

        Raises:
            ClientError: the driver was refused.
        """
        jar = environments.jar(client)
        self._process = subprocess.Popen(
            [
                "java",
                "--add-opens=java.base/java.nio=ALL-UNNAMED",
                "-Duser.timezone=UTC",
                "-cp",
                str(jar),
                str(environments.HERE / "Jdbc.java"),
                DRIVERS[client],
                url,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        _raise_error(self._read())

    def ask(self, *words: str) -> list[list[str]]:
        """Return the lines of an answer, word by word."""
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        return self._read()

    def names(self, *words: str) -> list[str]:
        """Return the first word of each line of an answer."""
        return [line[0] for line in _raise_error(self.ask(*words))]

    def update(self, sql: str) -> int:
        ((rows,),) = _raise_error(self.ask("update", sql))
        return int(rows)

    def query(self, sql: str, *values: str) -> Answer:
        """Return the rows of a query; values are `kind:text`. Raises ClientError."""
        words = ("prepared", sql, *values) if values else ("query", sql)
        header, *rows = _raise_error(self.ask(*words))
        columns = [list(column.split(" ", 1)) for column in header]
        return Answer(columns, [[_value(word) for word in row] for row in rows])

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    def _read(self) -> list[list[str]]:
        assert self._process.stdout is not None
        answer: list[list[str]] = []
        for line in self._process.stdout:
            if line == ".\n":
                return answer
            answer.append(line.rstrip("\n").split("\t"))
        raise AssertionError(f"the program ended: {answer}")


def _raise_error(answer: list[list[str]]) -> list[list[str]]:
    if answer and answer[0][0] == "error":
        code, message, state = answer[0][1:]
        raise ClientError(state if state not in ("null", "") else code, message)
    return answer


def _value(word: str) -> Any:
    """Return a value out of its class and its text."""
    kind, _, text = word.partition(" ")
    if kind == "null":
        return None
    if kind == "Boolean":
        return text == "true"
    if kind in _WHOLE:
        return int(text)
    return float(text) if kind in ("Float", "Double") else text

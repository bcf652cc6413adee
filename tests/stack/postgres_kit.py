"""Clients of the PostgreSQL wire of a mesh: one that blocks, and the real psql."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import struct
import subprocess

from tests.unit.gateway.postgres.kit import Reply, bind, message, parse, text

PSQL = shutil.which("psql")
_SSL_REQUEST = struct.pack("!ii", 8, 80_877_103)
_VERSION = 3 << 16


class PgClient:
    """One connection, logged in unless `begun` says otherwise."""

    def __init__(
        self,
        port: int,
        user: str,
        password: str,
        database: str = "penstock",
        context: ssl.SSLContext | None = None,
        seconds: float = 60,
    ) -> None:
        """
        Args:
            context: speak TLS.
            seconds: how long an answer may take; then it is a TimeoutError.
        """
        self._socket = socket.create_connection(("127.0.0.1", port), seconds)
        if context is not None:
            self._socket.sendall(_SSL_REQUEST)
            assert self._socket.recv(1) == b"S"
            self._socket = context.wrap_socket(self._socket, server_hostname="127.0.0.1")
        self._file = self._socket.makefile("rb")
        options = {"user": user, "database": database}
        body = b"".join(text(k) + text(v) for k, v in options.items()) + b"\0"
        self.send(struct.pack("!ii", len(body) + 8, _VERSION) + body)
        self.begun = self.reply(until=b"RE")
        if self.begun.kinds == "R":
            self.send(message(b"p", text(password)))
            self.begun = self.reply()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def reply(self, until: bytes = b"Z") -> Reply:
        """Read up to a message of one of the kinds *until*, or to the end of the connection."""
        found = Reply()
        try:
            while not found.messages or found.messages[-1][0] not in until:
                kind = self._exactly(1)
                (length,) = struct.unpack("!i", self._exactly(4))
                found.messages.append((kind, self._exactly(length - 4)))
        except (EOFError, ConnectionError):
            found.ended = True
        return found

    def _exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def query(self, sql: str) -> Reply:
        self.send(message(b"Q", text(sql)))
        return self.reply()

    def prepared(self, sql: str, values: list[bytes | None]) -> Reply:
        """Parse, Bind, Describe, Execute, Sync: as drivers do."""
        parts = (
            (b"P", parse("", sql)),
            (b"B", bind("", "", values)),
            (b"D", b"P\0"),
            (b"E", text("") + struct.pack("!i", 0)),
            (b"S", b""),
        )
        self.send(b"".join(message(kind, body) for kind, body in parts))
        return self.reply()

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def psql(address: str, password: str, *commands: str) -> str:
    """Run *commands* in psql; return what it says on both outputs.

    Args:
        address: such as `port=7706 user=ann`.
    """
    assert PSQL is not None
    given = [part for command in commands for part in ("-c", command)]
    done = subprocess.run(
        [PSQL, f"host=127.0.0.1 {address}", "-AtX", *given],
        env={"PATH": os.environ["PATH"], "PGPASSWORD": password, "LC_ALL": "C"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout

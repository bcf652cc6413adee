"""What another account of the machine finds of an embedded mesh: no file, no socket, no port of
Spark that serves it.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from pathlib import Path

import psutil

from penstock.mesh.running import RunningMesh

#: kinds of Spark's own frames (`Message.Type`)
_RPC_REQUEST = 3
_RPC_FAILURE = 5


def test_nothing_below_the_data_directory_is_anybody_elses_to_read(mesh: RunningMesh) -> None:
    assert stat.S_IMODE(mesh.layout.root.stat().st_mode) == 0o700
    listed = [
        Path(directory, name) for directory, _, names in os.walk(mesh.layout.root) for name in names
    ]
    # Spark's copies of jars have the rights of what they are copies of, which everybody may read
    made = [p for p in listed if p.suffix != ".jar" and not p.is_symlink() and p.exists()]
    readable = [p for p in made if p.stat().st_mode & 0o077]
    assert listed and not readable


def test_sockets_of_every_process_are_their_owners_alone(mesh: RunningMesh) -> None:
    found = set()
    for service in mesh.state()["services"]:
        for process in mesh.processes(service):
            try:
                connections = process.net_connections("unix")
            except psutil.NoSuchProcess:
                continue
            found |= {Path(c.laddr) for c in connections if c.laddr and c.laddr.startswith("/")}
    mine = [p for p in found if p.exists() and p.is_socket()]
    assert not [p for p in mine if p.stat().st_mode & 0o077]


def test_spark_listens_on_loopback_and_serves_nobody_who_has_not_proved_himself(
    mesh: RunningMesh,
) -> None:
    jvm = next(p for p in mesh.processes("spark") if p.name() == "java")
    ports = {
        c.laddr.port: c.laddr.ip
        for c in jvm.net_connections("tcp")
        if c.status == psutil.CONN_LISTEN
    }
    assert ports and {ip.removeprefix("::ffff:") for ip in ports.values()} == {"127.0.0.1"}
    for port in ports:
        answer = _ask(port, struct.pack(">BQI", _RPC_REQUEST, 7, 5) + b"hello")
        # Java's gate to Python closes or does not know the command; the others ask for a proof
        refused = answer[8:9] == bytes([_RPC_FAILURE]) and b"SaslMessage" in answer
        assert refused or not answer or answer.startswith(b"!z"), answer[:80]


def _ask(port: int, frame: bytes) -> bytes:
    """What a port of Spark says to *frame*, as far as it is read at once; empty when it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(struct.pack(">Q", 8 + len(frame)) + frame)
        connection.shutdown(socket.SHUT_WR)
        try:
            return connection.recv(4096)
        except ConnectionResetError:
            return b""

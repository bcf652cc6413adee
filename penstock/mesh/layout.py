"""Files and ports of a mesh.

Ports are a base and fixed distances from it, so that one number moves a whole mesh; each can be set
by itself; `auto` picks free ones. Refused: a port that is taken, before anything is started.
"""

from __future__ import annotations

import atexit
import os
import random
import secrets
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigError

DEFAULT_PORT_BASE = 7700
#: distance of each listener from the base
PORT_NAMES = {
    "gateway": 0,
    "notifier": 1,
    "store": 2,
    "kafka": 3,
    "controller": 4,
    "redis": 5,
    "postgres": 6,
    "federation": 7,
    "federation-tls": 8,
    "gateway-health": 10,
    "spark-health": 11,
    "notifier-health": 12,
    "store-health": 13,
    "snode-health": 14,
    "spark2-health": 15,
    "federation-health": 17,
}
#: nodes of stream tables that one mesh may have: node1 … node9
MAX_NODES = 9
PORT_NAMES |= {f"node{n}": 20 + n for n in range(1, MAX_NODES + 1)} | {
    f"node{n}-health": 30 + n for n in range(1, MAX_NODES + 1)
}
#: below the range that Linux gives to outgoing connections, so none of those takes a picked port
#: before its listener starts
_PICK_FROM = (15000, 30000)
#: random bytes of generated passwords and of the signing key
_PASSWORD_BYTES = 18
_KEY_BYTES = 48


@dataclass(frozen=True)
class Ports:
    """Port of every listener by name."""

    by_name: Mapping[str, int]

    def __getitem__(self, name: str) -> int:
        return self.by_name[name]


def ports_from(base: int = DEFAULT_PORT_BASE, own: Mapping[str, int] | None = None) -> Ports:
    """Return *base* plus each distance; *own* replaces single ones.

    Raises:
        ConfigError: *own* has an unknown name, or a number is no port.
    """
    unknown = sorted(set(own or {}) - set(PORT_NAMES))
    if unknown:
        raise ConfigError(
            f"no such port: {', '.join(unknown)}", hint=f"names are {', '.join(PORT_NAMES)}"
        )
    numbers = {name: base + distance for name, distance in PORT_NAMES.items()} | dict(own or {})
    wrong = [f"{name}={number}" for name, number in numbers.items() if not 0 < number < 65536]
    if wrong:
        raise ConfigError(f"not a port: {', '.join(wrong)}", hint="ports are 1 to 65535")
    return Ports(numbers)


def free_ports() -> Ports:
    """Ports that are free now, for tests and for several meshes beside each other."""
    chosen: dict[str, int] = {}
    random_source = random.SystemRandom()
    while len(chosen) < len(PORT_NAMES):
        number = random_source.randrange(*_PICK_FROM)
        if number not in chosen.values() and _is_free(number) and _claim(number):
            chosen[list(PORT_NAMES)[len(chosen)]] = number
    return Ports(chosen)


def require_free(ports: Ports, names: list[str]) -> None:
    """Check that nobody listens on the ports called *names*.

    Raises:
        ConfigError: some are taken; all of them are named.
    """
    taken = [f"{name} {ports[name]}" for name in names if not _is_free(ports[name])]
    if taken:
        raise ConfigError(
            f"port in use: {', '.join(taken)}",
            hint=(
                "choose another base with --port-base N (or PENSTOCK_PORT_BASE), one port with"
                " --port NAME=N, or --port-base auto; `penstock down` stops a mesh of this data"
                " directory"
            ),
        )


def _is_free(number: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
        except OSError:
            return False
    return True


def _claim(number: int) -> bool:
    """Whether nobody else has picked *number*; if so a UDP socket there keeps it ours while this
    process lives: no other mesh picks it before our listener has taken it.
    """
    claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        claim.bind(("127.0.0.1", number))
    except OSError:
        claim.close()
        return False
    atexit.register(claim.close)
    return True


@dataclass(frozen=True)
class Layout:
    """Files of one mesh; everything lies below `root`."""

    root: Path

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def state_file(self) -> Path:
        """What runs now, as JSON; written by the supervisor only."""
        return self.run / "mesh.json"

    @property
    def start_file(self) -> Path:
        """How many seconds the last start took."""
        return self.run / "start"

    @property
    def lock_file(self) -> Path:
        return self.run / "lock"

    @property
    def temporary(self) -> Path:
        """Scratch space of every process; emptied at start and at stop, because killed processes
        leave theirs behind.
        """
        return self.run / "tmp"

    def empty_temporary(self) -> None:
        shutil.rmtree(self.temporary, ignore_errors=True)

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets"

    @property
    def kafka(self) -> Path:
        return self.root / "kafka"

    @property
    def recordings(self) -> Path:
        """Where this is a directory, the mesh's JVMs write there what they have learned
        (`penstock.mesh.training`).
        """
        return self.run / "recordings"

    @property
    def redis(self) -> Path:
        return self.root / "redis"

    def log(self, service: str) -> Path:
        return self.logs / f"{service}.log"

    def make(self) -> None:
        """Make what is missing; nobody but its owner gets into the data directory, also into one
        that was open before.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for directory in (
            self.run,
            self.logs,
            self.kafka,
            self.redis,
            self.temporary,
            self.secrets,
        ):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for directory in (self.root, self.secrets):
            if directory.stat().st_mode & 0o077:
                directory.chmod(0o700)

    def secret(self, name: str) -> Path:
        """File `<name>.password`, generated at first use and readable by its owner only."""
        return _ensure_secret(self.secrets / f"{name}.password", _PASSWORD_BYTES)

    @property
    def token_key(self) -> Path:
        """File with the key that signs tokens, generated at first use and readable by its owner
        only.
        """
        return _ensure_secret(self.secrets / "token.key", _KEY_BYTES)

    @property
    def metrics_key(self) -> Path:
        """File with the key that opens names in metrics, generated at first use and readable by its
        owner only.
        """
        return _ensure_secret(self.secrets / "metrics.key", _PASSWORD_BYTES)


def _ensure_secret(path: Path, size: int) -> Path:
    """Return *path*; write *size* random bytes as text into it if there is no such file."""
    if not path.exists():
        fresh = path.with_suffix(".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(fresh, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(secrets.token_urlsafe(size) + "\n")
        fresh.rename(path)
    return path

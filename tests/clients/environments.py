"""An environment of its own for each client, from what the package registries of this machine serve.

Environments lie in the cache of `make setup`, under a name that changes with the client's lock, so
a second run makes none. What a registry does not serve, and what this machine has no tool for, is
skipped by name.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pooch
import pytest

from penstock.errors import ConfigError
from penstock.setup.jar_download import repository
from penstock.setup.jars import cache_directory

HERE = Path(__file__).parent
SHARED = HERE / "shared"
#: how uv, npm and go say that a file is not the one in the lock
_OTHER_FILE = ("hash mismatch", "eintegrity", "checksum mismatch")
_LOCKS = ("requirements.txt", "package-lock.json", "go.sum")


def command(client: str) -> list[str]:
    """Return the command of a client's program, whose environment is there then."""
    folder = HERE / client
    if (folder / "requirements.txt").exists():
        return [str(python(client)), str(folder / "main.py")]
    if (folder / "package.json").exists():
        return ["node", str(folder / "main.js")]
    return [str(_go(client))]


def variables(client: str) -> dict[str, str]:
    """Return what the program of a client wants in its environment."""
    modules = _home(client) / "node_modules"
    return {
        **os.environ,
        "PYTHONPATH": str(SHARED),
        "NODE_PATH": f"{modules}:{SHARED}",
        "TZ": "UTC",
    }


def python(client: str) -> Path:
    """Return the Python of a client's environment, in which its requirements are installed."""
    home = _home(client)
    made = home / "bin" / "python"
    if not _done(home):
        uv = str(Path(sys.executable).with_name("uv"))
        _run(client, [uv, "venv", "-q", "--clear", "--python", sys.executable, str(home)])
        lock = str(HERE / client / "requirements.txt")
        _install(
            client,
            [uv, "pip", "install", "-q", "--python", str(made), "--require-hashes", "-r", lock],
        )
        _mark(home)
    return made


def node(client: str) -> None:
    """Install what a client's package-lock.json names."""
    _require("node", client)
    _require("npm", client)
    home = _home(client)
    if not _done(home):
        home.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / client / name, home / name)
        _install(client, ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], home)
        _mark(home)


def jar(client: str) -> Path:
    """Return the jar of a JDBC driver, as jars.lock names it."""
    _require("java", client)
    _require("javac", client)
    path, digest = _locked_jars()[client]
    try:
        found = pooch.retrieve(
            f"{repository()}/{path}",
            known_hash=f"sha256:{digest}",
            fname=Path(path).name,
            path=cache_directory() / "jars" / "tests",
            downloader=pooch.HTTPDownloader(timeout=120),
        )
    except (OSError, ConfigError) as away:
        pytest.skip(f"no registry serves {client}: {away}")
    return Path(found)


def _go(client: str) -> Path:
    """Compile a client's program with the Go files that all share."""
    _require("go", client)
    home = _home(client)
    home.mkdir(parents=True, exist_ok=True)
    for source in (*(HERE / client).iterdir(), *SHARED.glob("*.go")):
        shutil.copy(source, home / source.name)
    if not _done(home):
        _install(client, ["go", "mod", "download"], home)
        _mark(home)
    _run(client, ["go", "build", "-mod=readonly", "-o", "program", "."], home)
    return home / "program"


def _home(client: str) -> Path:
    locks = [HERE / client / name for name in _LOCKS if (HERE / client / name).exists()]
    digest = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    return cache_directory() / "clients" / f"{client}-{digest[:12]}"


def _done(home: Path) -> bool:
    return (home / ".installed").exists()


def _mark(home: Path) -> None:
    (home / ".installed").touch()


def _locked_jars() -> dict[str, tuple[str, str]]:
    lines = (HERE / "jars.lock").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: (path, digest) for name, path, digest in words}


def _require(tool: str, client: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{client}: there is no {tool} here")


def _install(client: str, words: list[str], folder: Path | None = None) -> None:
    ended = _ended(words, folder)
    said = (ended.stdout + ended.stderr).lower()
    # another file than the lock names is no absence: it must not pass as one
    assert ended.returncode == 0 or not any(word in said for word in _OTHER_FILE), said
    if ended.returncode:
        pytest.skip(f"no registry serves {client}: {_end_of(ended)}")


def _run(client: str, words: list[str], folder: Path | None = None) -> None:
    ended = _ended(words, folder)
    assert ended.returncode == 0, f"{client}: {_end_of(ended)}"


def _ended(words: list[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **_index()},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def _end_of(ended: subprocess.CompletedProcess[str]) -> str:
    return "\n".join((ended.stderr or ended.stdout).strip().splitlines()[-12:])


def _index() -> dict[str, str]:
    """Return uv's settings: it does not read pip's configuration."""
    if "UV_DEFAULT_INDEX" in os.environ:
        return {}
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    index = os.environ.get("PIP_INDEX_URL") or asked.stdout.strip()
    found = {"UV_SYSTEM_CERTS": "1", "UV_LINK_MODE": "copy"}
    return {**found, "UV_DEFAULT_INDEX": index} if index else found

"""A real rsync daemon for tests, with one module that may be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.mesh.layout import free_ports

USER, PASSWORD = "keeper", "p:w d"  # noqa: S105
needs_rsync = pytest.mark.skipif(
    shutil.which("rsync") is None, reason="rsync is not installed (Debian: apt-get install rsync)"
)


@contextmanager
def rsync_daemon(directory: Path, host: str = "127.0.0.1") -> Iterator[tuple[str, Path]]:
    """(URL of the module, where its files are) of a daemon that runs until the end."""
    vault = directory / "module"
    port = free_ports()["gateway"]
    vault.mkdir(parents=True)
    secrets = directory / "secrets"
    config = directory / "rsyncd.conf"
    secrets.write_text(f"{USER}:{PASSWORD}\n")
    secrets.chmod(0o600)
    config.write_text(
        f"address = {host}\nport = {port}\nuse chroot = no\npid file = {directory / 'pid'}\nlog file = {directory / 'log'}\n"
        f"[vault]\npath = {vault}\nread only = no\nauth users = {USER}\nsecrets file = {secrets}\n"
        f"uid = {os.getuid()}\ngid = {os.getgid()}\n"
    )
    process = subprocess.Popen(
        ["rsync", "--daemon", "--no-detach", f"--config={config}"], stdin=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 30
        while subprocess.run(
            ["rsync", f"rsync://{host}:{port}/"], capture_output=True, check=False
        ).returncode:
            assert process.poll() is None and time.monotonic() < end, (
                directory / "log"
            ).read_text()
        yield (
            f"rsync://{USER}:{PASSWORD.replace(' ', '%20').replace(':', '%3A')}@{host}:{port}/vault",
            vault,
        )
    finally:
        process.terminate()
        process.wait(10)

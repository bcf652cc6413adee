"""Compiles, once and at install, the Python sources that a mesh imports.

An installer may leave that to the first import (uv does), and where Python is told to write no
bytecode (PYTHONDONTWRITEBYTECODE, as in many images) no import ever does it: each process of a mesh
would compile its libraries at each of its starts, which is more than half of what such a start
costs.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from penstock.setup.jars import cache_directory
from penstock.setup.service_packages import NODE_PACKAGE, PACKAGES

#: first the stream jobs: the other services keep pandas out of their process
_MODULES = (
    "spark_jobs.daemon",
    "spark_jobs.__main__",
    *(f"{package}.__main__" for package in (*PACKAGES.values(), NODE_PACKAGE)),
    "penstock.cli.start",
    "penstock.cli.query",
)
#: imports what is there: an installation may have a part of it only
_PROGRAM = """
import contextlib, importlib, sys
for module in sys.argv[1:]:
    with contextlib.suppress(ImportError):
        importlib.import_module(module)
"""


def compile_imports() -> None:
    """Import what the processes of a mesh import, in a process that may write bytecode; nothing
    when that was done since the last package was installed.
    """
    if _stamp().exists():
        return
    allowed = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    subprocess.run([sys.executable, "-c", _PROGRAM, *_MODULES], env=allowed, check=False)
    # the directory of packages may have changed by its first bytecode
    stamp = _stamp()
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.touch()


def _stamp() -> Path:
    """Return the file that exists once the packages that are installed now are compiled."""
    packages = Path(sysconfig.get_path("purelib"))
    state = f"{packages} {packages.stat().st_mtime_ns} {sys.version}"
    return cache_directory() / "bytecode" / hashlib.sha256(state.encode()).hexdigest()[:16]

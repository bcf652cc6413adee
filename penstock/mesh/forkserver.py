"""`python -m penstock.mesh.forkserver`: imports what services have in common once, and forks them.

It must not do more than import: a fork takes one thread along, so whatever has threads at work (a
client of Kafka, polars' pool, an event loop) has to begin in the service. Each service leaves its
parent at once and becomes the supervisor's child, which watches it like any other and is all it
needs: a forkserver that dies takes no service with it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

# before whatever loads it
import penstock.runtime.lean_imports  # noqa: F401
from penstock.mesh.forks import MAX_MESSAGE
from penstock.mesh.process import UMASK, tie_to
from penstock.mesh.process_title import set_title

#: a service's first parent is gone after this many seconds, or the machine does not work
_ADOPTION_SECONDS = 10.0


def serve(channel: socket.socket, supervisor: int, packages: list[str]) -> None:
    """Import *packages* in turn and fork what is asked for, until the other end closes.

    Args:
        channel: says which package is imported, takes requests and answers with process ids.
        supervisor: process that becomes the services' parent.
        packages: to import, as `python -m` would run them.
    """
    waiting = list(packages)
    while True:
        if waiting and not select.select([channel], [], [], 0)[0]:
            package = waiting.pop(0)
            _import(package)
            channel.send(json.dumps({"imported": package}).encode())
            continue
        request = channel.recv(MAX_MESSAGE)
        if not request:
            return
        wanted = json.loads(request)
        pid = _fork(wanted, supervisor, channel)
        channel.send(json.dumps({"pid": pid}).encode())


def _import(package: str) -> None:
    """Import what *package* runs; a fault in it is the service's to tell, in its own log."""
    with contextlib.suppress(Exception):
        importlib.import_module(f"{package}.__main__")
        # it is run by that name later
        del sys.modules[f"{package}.__main__"]
    # a collection in a service would write to every object it inherits, and so unshare their pages
    gc.collect()
    gc.freeze()


def _fork(wanted: Mapping[str, Any], supervisor: int, channel: socket.socket) -> int:
    """Return the process id of a grandchild that runs what is *wanted*: its parent ends at once, so
    that the supervisor gets it.
    """
    told, tell = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.close(told)
        pid = os.fork()
        if pid:
            os.write(tell, str(pid).encode())
            os._exit(0)
        os.close(tell)
        channel.close()
        _become(wanted, supervisor)
    os.close(tell)
    pid = int(os.read(told, 32) or 0)
    os.close(told)
    os.waitpid(parent, 0)
    return pid


def _become(wanted: Mapping[str, Any], supervisor: int) -> None:
    """Be the service from here on: with a process group, an environment, a log and a name of its
    own.
    """
    # not a session: Linux shares the processor between sessions first, and a priority counts within
    # one only
    os.setpgid(0, 0)
    os.umask(UMASK)
    os.chdir(wanted["directory"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for source, place in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, place)
    os.close(nothing)
    os.close(log)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    _read_environment_again()
    set_title(wanted["command"])
    deadline = time.monotonic() + _ADOPTION_SECONDS
    while os.getppid() != supervisor:
        if time.monotonic() > deadline:
            os._exit(1)
        time.sleep(0.001)
    tie_to(supervisor, signal.SIGKILL)
    # what ends with the process is collected as ever
    atexit.register(gc.unfreeze)
    package = wanted["package"]
    sys.argv = [package]
    runpy.run_module(package, run_name="__main__", alter_sys=True)
    sys.exit(0)


def _read_environment_again() -> None:
    """Have polars, which reads its variables when it is imported, read the service's own."""
    if "polars" in sys.modules:
        import polars as pl

        pl.Config.load("{}")


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), sys.argv[3].split(","))

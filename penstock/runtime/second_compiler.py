"""Lets the second compiler of a JVM yield to the work.

Java compiles what runs often twice: fast at first, and well later. While a mesh starts or comes
back, the second compiler takes more of the processors than the work that somebody waits for, mostly
for code that does not run again (docs/performance.md). At the lowest priority it has what is left
over: little then, and all it needs a moment later. Java's own option lowers the first compiler,
too, which is needed.

Linux only: elsewhere a priority is a process's.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

#: Linux cuts the name of a thread after 15 bytes
_NAME = "C2 CompilerThre"
_NICENESS = 19
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 20.0


def let_second_compiler_yield(pid: int) -> None:
    """Lower the priority of the second compiler of the JVM *pid*, which has just started, as soon
    as it is there. Returns at once; a JVM without one, or one that ends, is left alone.
    """
    if sys.platform.startswith("linux"):
        threading.Thread(target=_lower, args=(pid,), name="second-compiler", daemon=True).start()


def second_compiler(pid: int) -> int | None:
    """Return the thread of the second compiler of the JVM *pid*; None: it has none yet.

    Raises:
        FileNotFoundError: there is no such process.
    """
    for thread in Path(f"/proc/{pid}/task").iterdir():
        # a thread can end meanwhile
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if (thread / "comm").read_text(encoding="utf-8", errors="replace").strip() == _NAME:
                return int(thread.name)
    return None


def _lower(pid: int) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    # the JVM has ended, or this machine does not allow it: then nobody yields
    with contextlib.suppress(OSError):
        while (thread := second_compiler(pid)) is None:
            if time.monotonic() > deadline:
                return
            time.sleep(_LOOK_SECONDS)
        os.setpriority(os.PRIO_PROCESS, thread, _NICENESS)

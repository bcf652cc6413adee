"""Gives a forked process the command line and the name that others see: it has its parent's."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_PR_SET_NAME = 15
#: fields of /proc/self/stat, counted behind the name in brackets
_ARGUMENTS_BEGIN = 45
_ARGUMENTS_END = 46


def set_title(command: list[str]) -> None:
    """Show *command*, cut to the length of the command line that the process was started with;
    nothing where that is not Linux's.
    """
    if not sys.platform.startswith("linux"):
        return
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    begin, end = int(fields[_ARGUMENTS_BEGIN]), int(fields[_ARGUMENTS_END])
    room = end - begin
    if begin and room > 0:
        shown = b"\0".join(os.fsencode(word) for word in command)[: room - 1]
        ctypes.memmove(begin, shown.ljust(room, b"\0"), room)
    name = os.fsencode(command[-1].rpartition(".")[2])
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name, 0, 0, 0)

"""Which processes of this machine belong to a mesh: each carries the mesh's data directory in its
environment.
"""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from penstock.config.environment import MESH_VARIABLE


def members(root: Path) -> list[psutil.Process]:
    """Every process that was started by a mesh of the data directory *root*, whoever its parent is
    now.
    """
    mine = os.path.realpath(root)
    found = []
    for process in psutil.process_iter():
        try:
            theirs = process.environ().get(MESH_VARIABLE)
            if theirs and process.pid != os.getpid() and os.path.realpath(theirs) == mine:
                found.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found

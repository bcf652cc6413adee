"""Who goes first on a mesh's processors: the second compilers of both JVMs yield, and to all of the
mesh.
"""

from __future__ import annotations

import os
import sys

import psutil
import pytest

from penstock.mesh.running import RunningMesh
from penstock.runtime.second_compiler import second_compiler
from tests.stack.conftest import eventually

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's priorities")


def test_second_compilers_yield(mesh: RunningMesh) -> None:
    services = mesh.state()["services"]
    driver = psutil.Process(services["spark"]["pid"])
    jvms = [services["kafka"]["pid"]] + [c.pid for c in driver.children() if c.name() == "java"]
    assert len(jvms) == 2
    for pid in jvms:
        thread = second_compiler(pid)
        assert thread is not None
        eventually(lambda thread=thread: os.getpriority(os.PRIO_PROCESS, thread) == 19)  # type: ignore[misc]
        # the work keeps its own
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, driver.pid)


def test_all_services_share_one_session(mesh: RunningMesh) -> None:
    pids = [service["pid"] for service in mesh.state()["services"].values()]
    assert len({os.getsid(pid) for pid in pids}) == 1
    assert [os.getpgid(pid) for pid in pids] == pids

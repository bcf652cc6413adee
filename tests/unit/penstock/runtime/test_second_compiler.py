"""The second compiler of a JVM gets the lowest priority as soon as it is there; others keep theirs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from penstock.runtime.second_compiler import let_second_compiler_yield, second_compiler

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's priorities")

# its first thread takes the compiler's name when it is told to
_LATER = """
import sys
print(flush=True)
sys.stdin.readline()
open("/proc/self/comm", "w").write("C2 CompilerThread0")
sys.stdin.readline()
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", _LATER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdout.readline()
        yield child
        child.kill()


def test_it_yields_as_soon_as_it_is_there(process: subprocess.Popen[bytes]) -> None:
    let_second_compiler_yield(process.pid)
    assert second_compiler(process.pid) is None
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == own
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    deadline = time.monotonic() + 20
    while os.getpriority(os.PRIO_PROCESS, process.pid) == own:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert second_compiler(process.pid) == process.pid
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 19


def test_a_process_that_has_ended_is_left_alone() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    let_second_compiler_yield(ended.pid)
    with pytest.raises(FileNotFoundError):
        second_compiler(ended.pid)

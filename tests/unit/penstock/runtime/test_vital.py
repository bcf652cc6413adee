from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.runtime import vital

_THREAD = """
import threading, time
from polars.exceptions import PanicException
from penstock.runtime import vital

class Odd(BaseException):
    pass

@vital.run
def work():
    raise {error}

threading.Thread(target=work, name="rows", daemon=True).start()
time.sleep(60)
"""
_TASK = """
import asyncio
from penstock.runtime import vital

async def work():
    raise {error}

async def main():
    made = vital.task(work(), "probe")
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("program", [_THREAD, _TASK], ids=["thread", "task"])
@pytest.mark.parametrize(
    "error", ["ValueError('x')", "__import__('polars').exceptions.PanicException('x')"]
)
def test_a_vital_part_that_fails_ends_the_process(program: str, error: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program.format(error=error)],
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == vital.EXIT_STATUS
    assert b"a vital part failed" in done.stdout + done.stderr


async def test_a_vital_task_may_end_and_be_cancelled() -> None:
    async def work() -> int:
        return 7

    assert await vital.task(work(), "ends") == 7
    task = vital.task(work(), "cancelled")
    task.cancel()

"""Services load neither pandas nor rich."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SERVICES = (
    "gateway",
    "services/federation",
    "services/notifier",
    "services/snode",
    "services/store",
    "services/tables",
    "spark_jobs",
)


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )


def test_pyarrow_works_without_pandas() -> None:
    program = (
        "import penstock.runtime.lean_imports, sys; import numpy, pyarrow; pyarrow.array([1, 2]); "
        "pyarrow.array(numpy.array([1.0])); print('pandas' in sys.modules)"
    )
    said = run(program)
    assert said.stdout.strip() == "False"


@pytest.mark.parametrize("package", SERVICES)
def test_a_service_keeps_it_out_before_anything_loads_it(package: str) -> None:
    lines = (Path(package) / "__main__.py").read_text().splitlines()
    imports = [line.split()[1] for line in lines if line.startswith(("import ", "from "))]
    ends_with = "os" if package == "spark_jobs" else "sys"
    assert imports[:3] == ["__future__", ends_with, "penstock.runtime.lean_imports"]


def test_logs_need_no_rich() -> None:
    program = (
        "import penstock.runtime.lean_imports, sys; from penstock.runtime import log; "
        "log.configure('x')\ntry: 1 / 0\nexcept ZeroDivisionError: log.get('t').exception('fell')\n"
        "print('rich' in sys.modules, 'attr' in sys.modules)"
    )
    said = run(program)
    assert said.stdout.split() == ["False", "False"]
    assert "ZeroDivisionError" in said.stderr


def test_sparks_worker_daemon_keeps_it_out_before_anything_loads_it() -> None:
    """Only as a program: who imports the module may want pandas."""
    program = (
        "import runpy, sys; from pyspark import daemon; "
        "daemon.manager = lambda: print('pandas' in sys.modules, 'polars' in sys.modules); "
        "runpy.run_module('spark_jobs.daemon', run_name='__main__')"
    )
    said = run(program)
    assert said.stdout.split() == ["False", "True"]

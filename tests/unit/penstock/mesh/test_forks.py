"""Services forked from what is imported: whose children they are, what they see, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from penstock.mesh.forks import Forks, ForksGone, reap_strays
from penstock.mesh.process import AdoptedProcess, ChildProcess

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans of Linux")

_SAYS = """
import json, os, signal, sys, threading
if __name__ == "__main__":
    print(json.dumps({
        "own": os.environ.get("OWN"), "common": os.environ.get("COMMON"), "argv": sys.argv,
        "parent": os.getppid(), "group": os.getpgid(0), "session": os.getsid(0), "threads": threading.active_count(),
        "directory": os.getcwd(), "umask": os.umask(0), "imported": "heavy" in sys.modules,
    }), flush=True)
    if os.environ.get("ENDS"):
        sys.exit(int(os.environ["ENDS"]))
    signal.pause()
else:
    import heavy
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Packages `says`, which tells what it sees, and `broken`, which cannot be imported."""
    for name, text in (("says", _SAYS), ("broken", "raise RuntimeError('it is broken')\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "__main__.py").write_text(text, encoding="utf-8")
    (tmp_path / "heavy.py").touch()
    return tmp_path


@pytest.fixture
def forks(packages: Path) -> Iterator[Forks]:
    environment = {
        **os.environ,
        "PYTHONPATH": f"{packages}:{Path.cwd()}",
        "COMMON": "yes",
        "PYTHONUNBUFFERED": "1",
    }
    made = Forks(["says", "broken"], environment, packages / "forkserver.log", packages)
    yield made
    made.close()


def _start(forks: Forks, root: Path, package: str, **environment: str) -> ChildProcess:
    deadline = time.monotonic() + 60
    while (spawn := forks.spawn_for(package)) is None:
        assert time.monotonic() < deadline, (root / "forkserver.log").read_text()
        time.sleep(0.02)
    command = [sys.executable, "-m", package]
    return ChildProcess(command, environment, root / f"{package}.log", root, spawn)


def _said(child: ChildProcess) -> dict[str, object]:
    deadline = time.monotonic() + 60
    while not (text := child.log.read_text()).endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    found: dict[str, object] = json.loads(text.splitlines()[-1])
    return found


def test_a_fork_is_a_process_like_a_program(forks: Forks, packages: Path) -> None:
    child = _start(forks, packages, "says", OWN="1")
    said = _said(child)
    assert said == {
        "own": "1",
        "common": None,  # of the forkserver's environment nothing is left
        "argv": said["argv"],
        "parent": os.getpid(),
        "group": child.pid,
        "session": os.getsid(0),  # with those it shares the processor with
        "threads": 1,
        "directory": str(packages),
        "umask": 0o077,
        "imported": True,
    }
    process = psutil.Process(child.pid)
    assert process.cmdline()[:3] == [sys.executable, "-m", "says"]
    assert process.name() == "says"
    assert child.exit_status() is None
    child.kill()
    assert child.exit_status() == -signal.SIGKILL


def test_a_fork_ends_with_its_own_status_and_may_be_asked_to_stop(
    forks: Forks, packages: Path
) -> None:
    ended = _start(forks, packages, "says", ENDS="78")
    assert ended.wait(30) and ended.exit_status() == 78
    asked = _start(forks, packages, "says")
    _said(asked)
    asked.ask_to_stop()
    assert asked.wait(30) and asked.exit_status() == -signal.SIGTERM


def test_what_cannot_be_imported_says_so_in_its_own_log(forks: Forks, packages: Path) -> None:
    child = _start(forks, packages, "broken")
    assert child.wait(30) and child.exit_status() == 1
    assert "it is broken" in child.log.read_text()
    # and the others come all the same
    assert _said(_start(forks, packages, "says", ENDS="0"))["imported"] is True


def test_a_dead_forkserver_takes_no_service_with_it(forks: Forks, packages: Path) -> None:
    child = _start(forks, packages, "says")
    _said(child)
    assert forks.pid is not None
    os.kill(forks.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    with pytest.raises(ForksGone):
        while time.monotonic() < deadline:
            forks.spawn_for("says")
            time.sleep(0.02)
    assert child.exit_status() is None and forks.pid is None
    assert forks.was_killed
    child.kill()


def test_services_end_when_their_supervisor_does(packages: Path) -> None:
    script = f"""if True:
        import os, sys, time
        from pathlib import Path
        from penstock.mesh.forks import Forks
        root = Path({str(packages)!r})
        environment = {{**os.environ, "PYTHONPATH": f"{{root}}:{{os.getcwd()}}"}}
        forks = Forks(["says"], environment, root / "forkserver.log", root)
        while (spawn := forks.spawn_for("says")) is None:
            time.sleep(0.02)
        print(spawn(["says"], environment, root / "says.log", root).pid, forks.pid, flush=True)
        os.kill(os.getpid(), 9)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = {int(pid) for pid in done.stdout.split()}
    deadline = time.monotonic() + 30
    while any(psutil.pid_exists(pid) for pid in left):
        assert time.monotonic() < deadline
        reap_strays(set())  # this process gets the orphans of its own orphans, too
        time.sleep(0.02)


def test_strays_are_taken_and_own_children_left(forks: Forks, packages: Path) -> None:
    own = subprocess.Popen([sys.executable, "-c", "pass"])
    stray = os.spawnlp(os.P_NOWAIT, "true", "true")
    own_adopted = AdoptedProcess(os.spawnlp(os.P_NOWAIT, "false", "false"))
    deadline = time.monotonic() + 30
    while psutil.pid_exists(stray):
        assert time.monotonic() < deadline
        reap_strays({own.pid, own_adopted.pid, forks.pid or 0})
        # their status is still there for whoever asks, and then the next one is seen
        assert own.poll() in (None, 0) and own_adopted.poll() in (None, 1)
        time.sleep(0.02)
    assert own.wait(30) == 0 and own_adopted.wait(30) == 1

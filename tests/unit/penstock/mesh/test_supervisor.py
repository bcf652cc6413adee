"""When a service that died, or that does not answer, is started again; with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.mesh import supervisor
from penstock.mesh.kept import Kept, State, pause_between_looks
from penstock.mesh.layout import Layout, free_ports
from penstock.mesh.process import ChildProcess
from penstock.mesh.readiness import ask
from penstock.mesh.restarts import pause
from penstock.mesh.running import RunningMesh
from penstock.mesh.services import Options, ServicePlan
from penstock.mesh.state import read_state
from penstock.mesh.stop import stop_mesh
from penstock.mesh.supervisor import Supervisor
from penstock.runtime.mesh_members import members

SERVICE = """
import signal, sys, threading
from penstock.runtime.health import Health
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
late = [0.0]
def stick(number, frame):
    late[0] = 60.0
signal.signal(signal.SIGUSR1, stick)
health = Health("store", int(sys.argv[1]))
health.ready("start")
health.watch("event loop", lambda: late[0])
while True:
    signal.pause()
"""


@pytest.fixture
def kept_signals() -> Iterator[None]:
    """A supervisor sets handlers of its process."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
    before = [signal.getsignal(number) for number in numbers]
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def supervised(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[RunningMesh], None],
    *,
    deaf: bool = True,
    silent_seconds: float = 1.0,
    start_arguments: Callable[[], list[str]] = list,
    others: Sequence[ServicePlan] = (),
) -> None:
    """Run a service and *others* under a supervisor; *act* on it from another thread, then end
    all.
    """
    ports = free_ports()
    layout = Layout(root)
    port = ports["store-health"]

    def plan(layout: Layout, ports: Any, options: Options) -> list[ServicePlan]:
        command = [sys.executable, "-c", SERVICE, str(port), *(["deaf"] if deaf else [])]
        environment = {**os.environ, "PENSTOCK_MESH": str(layout.root)}
        return [
            ServicePlan(
                "store",
                command,
                environment,
                (),
                lambda: ask(port),
                start_arguments=start_arguments,
            ),
            *others,
        ]

    monkeypatch.setattr(supervisor, "plan", plan)
    monkeypatch.setattr(supervisor, "_STOP_SECONDS_SERVICE", 1.0)
    failed: list[BaseException] = []

    def acting() -> None:
        try:
            mesh = RunningMesh(layout, {})
            while read_state(layout) is None:
                time.sleep(0.01)
            mesh.wait_ready("store", seconds=60)
            act(mesh)
        except BaseException as error:
            failed.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    run = Supervisor(layout, ports, Options(services=("store",), silent_seconds=silent_seconds))
    thread = threading.Thread(target=acting)
    thread.start()
    run.run(lambda _: None)
    thread.join()
    if failed:
        raise failed[0]
    assert not members(layout.root)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGUSR1], ids=["silent", "stuck"])
@pytest.mark.usefixtures("kept_signals")
def test_a_service_that_does_not_answer_is_ended_by_force_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def act(mesh: RunningMesh) -> None:
        pid = mesh.kill("store", number)
        mesh.wait_ready("store", not_pid=pid, seconds=60)
        assert mesh.state()["services"]["store"]["restarts"] == 1
        assert psutil.Process(mesh.pid("store")).environ()["PENSTOCK_RESTARTS"] == "1"

    supervised(tmp_path, monkeypatch, act)


@pytest.mark.usefixtures("kept_signals")
def test_a_silent_service_is_given_time_while_another_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    busy = "import itertools, time\nfor _ in itertools.count(): print('.', flush=True); time.sleep(0.1)"
    other = ServicePlan(
        "snode",
        [sys.executable, "-c", busy],
        {**os.environ, "PENSTOCK_MESH": str(tmp_path)},
        (),
        lambda: "" if started.exists() else "its start",
    )
    monkeypatch.setattr(supervisor, "_PATIENCE_IN_START", 1_000)

    def act(mesh: RunningMesh) -> None:
        pid = mesh.kill("store", signal.SIGSTOP)
        silent = time.monotonic()
        while time.monotonic() < silent + 3:  # its limit is a second
            assert mesh.state()["services"]["store"]["restarts"] == 0
        assert mesh.pid("store") == pid
        started.touch()
        mesh.wait_ready("store", not_pid=pid, seconds=60)

    supervised(tmp_path, monkeypatch, act, others=[other])


@pytest.mark.usefixtures("kept_signals")
def test_a_service_may_be_told_something_else_when_it_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = iter((["first"], ["again"]))

    def act(mesh: RunningMesh) -> None:
        pid = mesh.kill("store", signal.SIGKILL)
        mesh.wait_ready("store", not_pid=pid, seconds=60)
        assert psutil.Process(mesh.pid("store")).cmdline()[-1] == "again"

    supervised(tmp_path, monkeypatch, act, deaf=False, start_arguments=lambda: next(starts))


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.usefixtures("kept_signals")
def test_restart_ends_what_does_not_hear_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    def act(mesh: RunningMesh) -> None:
        pid = mesh.pid("store")
        if stopped:
            mesh.kill("store", signal.SIGSTOP)
        mesh.restart("store", grace=0.5)
        assert mesh.pid("store") != pid

    supervised(tmp_path, monkeypatch, act, silent_seconds=0)


def test_down_ends_a_supervisor_and_services_that_do_not_hear_it(tmp_path: Path) -> None:
    """Nothing of a mesh is left, though neither listens."""
    layout = Layout(tmp_path)
    layout.make()
    deaf = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"
    environment = {**os.environ, "PENSTOCK_MESH": str(tmp_path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", deaf],
            env=environment,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        for _ in "ab"
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline()
    os.kill(processes[1].pid, signal.SIGSTOP)
    layout.state_file.write_text(f'{{"supervisor": {processes[0].pid}}}')
    # whoever started them must take notice of their end
    reapers = [threading.Thread(target=process.wait) for process in processes]
    for reaper in reapers:
        reaper.start()
    assert stop_mesh(layout, seconds=0.5) == 2
    for reaper in reapers:
        reaper.join(10)
    assert not members(layout.root) and not any(
        psutil.pid_exists(process.pid) for process in processes
    )
    for process in processes:
        process.stdout.close()  # type: ignore[union-attr]


def test_a_standby_waits_while_its_twin_is_on_its_way(tmp_path: Path) -> None:
    service = ServicePlan("spark", [], {}, (), lambda: "")
    child = ChildProcess([sys.executable, "-c", ""], os.environ, tmp_path / "log", tmp_path)
    assert Supervisor._is_coming(Kept(service, "unready", child=child))
    ready = Kept(service, "ready", child=child, ready_since=time.monotonic())
    assert Supervisor._is_coming(ready)
    ready.ready_since -= supervisor._TWIN_ALONE_SECONDS
    assert not Supervisor._is_coming(ready)
    assert not Supervisor._is_coming(Kept(service, "backoff"))
    child.started -= supervisor._TWIN_SECONDS
    assert not Supervisor._is_coming(Kept(service, "starting", child=child))
    assert child.wait(30)


def test_who_dies_young_waits_longer_each_time() -> None:
    pauses = [0.0]
    for _ in range(8):
        pauses.append(pause(pauses[-1], healthy=2.0))
    assert pauses[1:] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_who_was_healthy_for_a_while_is_back_at_once_and_begins_anew() -> None:
    assert pause(30.0, healthy=10.0) == 0.0
    assert pause(pause(30.0, healthy=3600.0), healthy=0.0) == 0.5


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ({"state": "waiting"}, True),
        ({"state": "starting"}, True),
        ({"state": "ready", "ever_ready": True}, False),
        ({"state": "starting", "ever_ready": True}, False),  # its successor keeps nobody waiting
        ({"state": "backoff"}, False),
        ({"state": "failed"}, False),
    ],
)
def test_others_wait_for_a_service_that_starts_only(given: dict[str, Any], first: bool) -> None:
    service = ServicePlan("store", [], {}, (), lambda: "")
    assert Supervisor._goes_first(Kept(service, **given)) is first


def test_others_wait_for_a_slow_service_for_a_while_only(tmp_path: Path) -> None:
    service = ServicePlan("store", [], {}, (), lambda: "")
    child = ChildProcess([sys.executable, "-c", ""], os.environ, tmp_path / "log", tmp_path)
    kept = Kept(service, "starting", child=child)
    assert Supervisor._goes_first(kept)
    child.started -= supervisor._HEAD_START_SECONDS
    assert not Supervisor._goes_first(kept)
    assert child.wait(30)


def test_the_next_standby_leaves_the_processors_to_the_one_that_takes_over() -> None:
    assert pause(0.0, healthy=10.0, has_twin=True) == 10.0
    # whoever cannot start waits as any other
    assert pause(0.0, healthy=2.0, has_twin=True) == 0.5


@pytest.mark.parametrize(
    ("states", "seconds"),
    [
        (["ready", "ready"], 1.0),
        (["ready", "failed"], 1.0),
        (["ready", "unready"], 0.5),
        (["unready", "starting"], 0.1),
        (["ready", "backoff"], 0.1),
        (["waiting", "ready"], 0.1),
    ],
)
def test_a_supervisor_looks_often_only_while_somebody_waits_for_a_service(
    states: list[State], seconds: float
) -> None:
    assert pause_between_looks(states) == seconds

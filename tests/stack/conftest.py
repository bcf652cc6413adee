"""One mesh for all tests of a session: every service as a real process, in a directory and on ports of
its own.

`PENSTOCK_TEST_BACKEND=local` (default) starts child processes. With `containers` the tests of the
shared mesh run against the compose stack; others skip, and so does what looks into the embedded
mesh's files. Tests that kill services or move the clock by hand ask for `own_mesh`, which starts
another one for them alone. A failing test carries the end of every service's log in its report.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import pytest
from xdist.scheduler import LoadScopeScheduling

from penstock.client.connection import connect
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh, running_mesh
from tests.stack.federation_kit import SELF

T = TypeVar("T")
MeshFactory = Callable[..., RunningMesh]
#: a busy machine is slow, not wrong
PATIENT = {"PENSTOCK_GATEWAY_LIVE_TIMEOUT": "120"}

#: topics of the shared mesh rest soon, so that all its tests meet some that do
RESTING = {"PENSTOCK_SPARK_IDLE_SECONDS": "20"}


#: the same tests against child processes or containers
CONTAINERS = os.environ.get("PENSTOCK_TEST_BACKEND") == "containers"


def pytest_itemcollected(item: pytest.Item) -> None:
    if CONTAINERS and "mesh" not in getattr(item, "fixturenames", ()):
        item.add_marker(
            pytest.mark.skip(reason="containers: this test starts processes of its own")
        )


class _SharedTogether(LoadScopeScheduling):  # type: ignore[misc]
    """Files go to workers whole, and all that use the session's mesh to one of them: a mesh costs a
    minute and memory.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return "shared" if _uses_the_shared_mesh(Path(self.config.rootpath) / file) else file


@lru_cache
def _uses_the_shared_mesh(path: Path) -> bool:
    text = path.read_text()
    return "def mesh(" not in text and _TAKES_MESH.search(text) is not None


#: a test or a fixture that has the fixture `mesh`
_TAKES_MESH = re.compile(
    r"^(?:@pytest\.fixture.*\n(?:async )?def \w+|(?:async )?def test_\w+)\([^)]*\bmesh:",
    re.MULTILINE,
)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    return _SharedTogether(config, log)


@pytest.fixture(scope="session")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    """The session's mesh, on the system's clock. Tests share it: use names of your own."""
    if CONTAINERS:
        from tests.backends import running_stack

        with running_stack(tmp_path_factory.mktemp("mesh")) as stack:
            _shared.append(stack)  # type: ignore[arg-type]
            yield stack  # type: ignore[misc]
            _shared.clear()
        return
    with running_mesh(
        tmp_path_factory.mktemp("mesh"), environment={**PATIENT, **RESTING, **SELF}
    ) as running:
        _shared.append(running)
        yield running
        _shared.clear()


#: the session's mesh once some test has asked for it
_shared: list[RunningMesh] = []


@pytest.fixture(scope="module", autouse=True)
def _leave_no_databases() -> Iterator[None]:
    """Every partition that is read costs the shared mesh a worker: what a file of tests made goes
    when it is done.
    """
    yield
    for running in _shared:
        with connect(
            running.gateway_url,
            user=running.user,
            password=running.password,
            options=ConnectionOptions(timeout=150),
        ) as client:
            databases = [
                row[0]
                for row in client.query("SHOW DATABASES").rows
                if not str(row[0]).endswith("_schema")
            ]
            for name in databases:
                for stream in client.query("SHOW STREAMS", database=name).rows:
                    client.execute(f"DROP STREAM IF EXISTS `{stream[0]}`", database=name)
            for name in databases:
                client.execute(f"DROP DATABASE IF EXISTS `{name}`")


@pytest.fixture
def own_mesh(tmp_path: Path) -> Iterator[MeshFactory]:
    """Start a mesh for this test only: `own_mesh(services=…, clock="manual", environment={…})`."""
    with ExitStack() as stack:

        def start(data_dir: Path | None = None, **options: object) -> RunningMesh:
            options["environment"] = {**PATIENT, **dict(options.get("environment") or {})}  # type: ignore[call-overload]
            context: AbstractContextManager[RunningMesh] = running_mesh(
                data_dir or tmp_path / "own", **options
            )  # type: ignore[arg-type]
            return stack.enter_context(context)

        yield start


def eventually(check: Callable[[], T], deadline: float = 30.0, every: float = 0.02) -> T:
    """Repeat *check* until it returns something true and raises nothing; what it last said when it
    never does.

    *deadline* is seconds on a quiet machine; a busy one gets four times that.
    """
    end = time.monotonic() + 4 * deadline
    while True:
        try:
            found = check()
            if found:
                return found
            failure: Exception | None = AssertionError(f"still {found!r} after {deadline} s")
        except Exception as wrong:
            failure = wrong
        if time.monotonic() > end:
            assert failure is not None
            raise failure
        time.sleep(every)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed and call.when in ("setup", "call"):
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, RunningMesh):
                report.sections.append(("logs of the mesh", value.log_tails()))

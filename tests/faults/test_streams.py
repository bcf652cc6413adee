"""Streams, their results and their notifications through every scenario: the product of `scenarios`
and `checks`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from tests.faults.checks import CHECKS, Check, Rows
from tests.faults.conftest import QUICK, SCENARIO
from tests.faults.load import Load
from tests.faults.report import Report
from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.world import World, persistently
from tests.stack.conftest import eventually
from tests.stack.names import unique

CHOSEN = [s for s in SCENARIOS if QUICK in (None, s.quick) and re.search(SCENARIO, s.name)]
_BEFORE_ROWS = 2400
_AFTER_ROWS = 2400


@dataclass
class Outcome:
    """What became of one scenario: an error for all, or one for each check that did not hold."""

    failures: dict[str, BaseException] = field(default_factory=dict)


class Worlds:
    """The mesh at hand; a new one when one is broken, or a scenario needs another kind."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        self._factory = factory
        self._world: World | None = None

    def get(self, *, standby: bool) -> World:
        """The mesh, with a *standby* for the stream jobs or without."""
        if self._world is not None and self._world.standby != standby:
            self.close()
        if self._world is None:
            self._world = World(self._factory.mktemp("faults") / "mesh", standby=standby)
        return self._world

    def broken(self) -> None:
        if self._world is not None:
            print(self._world.mesh.log_tails())
        self.close()

    def close(self) -> None:
        if self._world is not None:
            self._world.close()
        self._world = None


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    found = Worlds(tmp_path_factory)
    yield found
    found.close()


@pytest.fixture(scope="module", params=CHOSEN, ids=lambda s: s.name)
def outcome(request: pytest.FixtureRequest, worlds: Worlds, report: Report) -> Outcome:
    """Set all checks up, let the scenario happen under load, and verify each check."""
    scenario: Scenario = request.param
    try:
        world = worlds.get(standby=scenario.standby)
        began = time.monotonic()
        found = play(world, scenario, report)
        report.took(scenario.name, time.monotonic() - began)
        return found
    except BaseException as error:
        worlds.broken()
        if isinstance(error, (pytest.skip.Exception, KeyboardInterrupt)):
            raise
        return Outcome({check.name: error for check in CHECKS})


def play(world: World, scenario: Scenario, report: Report) -> Outcome:
    db = unique("f")
    client = world.client
    persistently(lambda: client.execute(f"CREATE DATABASE IF NOT EXISTS {db}"))
    client.execute(
        "CREATE STABLE m (ts TIMESTAMP, v DOUBLE, k INT, state INT) TAGS (site VARCHAR(8))",
        database=db,
    )
    checks: list[Check] = [kind(world, db) for kind in CHECKS]
    try:
        for check in checks:
            check.setup()
        load = Load(world, db)
        with load.flowing():
            eventually(lambda: load.sent >= _BEFORE_ROWS, 60)
            with ExitStack() as meanwhile:
                for check in checks:
                    meanwhile.enter_context(check.meanwhile())
                began = time.monotonic()
                began = scenario.act(world, load, db) or began
            at_fault = load.sent
            # a busy machine gets four times what is promised
            persistently(lambda: client.drain(db), max(4 * scenario.limit, 180))
            seconds = time.monotonic() - began
            report.recovered(scenario.name, seconds, scenario.limit)
            eventually(lambda: load.sent >= at_fault + _AFTER_ROWS, 60)
        depth = max(check.depth for check in checks)
        persistently(lambda: client.drain(db, depth=depth))
        for stream in (s for check in checks for s in check.streams):
            persistently(lambda s=stream: client.execute(f"FLUSH STREAM {s}", database=db))  # type: ignore[misc]
        persistently(lambda: client.drain(db, depth=depth))
        found = Outcome()
        for check in checks:
            try:
                check.verify(load)
            except Exception as wrong:
                found.failures[check.name] = wrong
        if seconds > 4 * scenario.limit:
            found.failures.setdefault(
                Rows.name,
                AssertionError(
                    f"recovered after {seconds:.0f} s, promised are {scenario.limit:.0f} s"
                ),
            )
        return found
    finally:
        for check in checks:
            check.close()
        drop(world, db, checks)


def drop(world: World, db: str, checks: list[Check]) -> None:
    """Every partition that is read costs a worker: the database goes with its streams, the last one
    first.
    """
    for check in checks[::-1]:
        check.drop()
    persistently(lambda: world.client.execute(f"DROP DATABASE IF EXISTS {db}"))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.name)
def test_holds(request: pytest.FixtureRequest, outcome: Outcome, check: type[Check]) -> None:
    if (wrong := outcome.failures.get(check.name)) is not None:
        raise wrong

"""Keeps the services of one data directory running: starts them in order, notices who dies, starts
it again, stops all.

One supervisor per data directory (a lock file says so). What it knows is in `run/mesh.json`,
replaced at each change, so that `penstock status` needs no connection to it. A service that was
healthy for a while before it died is started again at once. One that dies young waits 0.5 s,
doubled each time up to 30 s; one that exits with status 78 was configured wrongly and is left
alone. One that was ready and whose health port then does not answer for some seconds is ended, by
force if need be, and started again. Refused: deciding what is healthy, which a service says of
itself.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from penstock.errors import EXIT_CONFIG, ConfigError, RemoteError
from penstock.mesh.forks import Forks, ForksGone, reap_strays
from penstock.mesh.kept import Kept, pause_between_looks
from penstock.mesh.layout import Layout, Ports, require_free
from penstock.mesh.movement import Movement
from penstock.mesh.process import ChildProcess, Spawn, execute, rotate
from penstock.mesh.readiness import unresponsive
from penstock.mesh.restarts import pause
from penstock.mesh.services import (
    Options,
    ServicePlan,
    addresses,
    check_services,
    common_environment,
    listeners,
    plan,
    served,
)
from penstock.mesh.state import last_start, note_start, tail
from penstock.mesh.stop import end_orphans
from penstock.runtime import log

_STOP_SECONDS = {"kafka": 20.0, "redis": 5.0}
_STOP_SECONDS_SERVICE = 12.0
#: a service that dies this often before it was ever ready will not get better by itself
_START_ATTEMPTS = 4
#: those that start behind others wait at most so long for each of them
_HEAD_START_SECONDS = 10.0
#: and after so many its twin is no longer waited for
_TWIN_SECONDS = 60.0
#: a twin that is ready has the processors to itself for so long: its first results come now
_TWIN_ALONE_SECONDS = 5.0
#: times as long may a service be silent while others start
_PATIENCE_IN_START = 6
_logger = log.get("penstock.mesh")


class _Wakeup:
    """Sleep that ends as soon as a child ends or a signal comes."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # ignored signals wake nobody

    def wait(self, seconds: float) -> None:
        if select.select([self._read], [], [], seconds)[0]:
            os.read(self._read, 4096)


class Supervisor:
    """Runs in the main thread of its process, because children are tied to the thread that starts
    them.
    """

    def __init__(self, layout: Layout, ports: Ports, options: Options) -> None:
        check_services(options.services)
        self._layout = layout
        self._ports = ports
        self._options = options
        layout.make()
        self._lock = _lock(layout)
        end_orphans(layout)
        layout.empty_temporary()
        layout.make()
        require_free(
            ports, [name for service in options.all_services for name in listeners(service)]
        )
        self._kept = {service.name: Kept(service) for service in plan(layout, ports, options)}
        self._started = time.time()
        self._last_start = last_start(layout)
        self._stopping = False
        self._forks: Forks | None = None
        self._movements: dict[str, Movement] = {}
        self._checks = ThreadPoolExecutor(len(self._kept), thread_name_prefix="check")

    def run(self, on_change: Callable[[dict[str, Any]], None]) -> None:
        """Start everything and keep it running until SIGTERM or SIGINT; then stop everything. A
        service that is slow to start is waited for.

        Raises:
            RemoteError: a service ends again and again before it is ready.
        """
        woken = _Wakeup()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop_asked)
        self._forks = self._make_forks()
        all_ready = False
        shown = ""
        try:
            for kept in self._kept.values():
                kept.service.prepare()
            while not self._stopping:
                for kept in self._kept.values():
                    self._take_end(kept)
                for kept in self._kept.values():
                    self._step(kept)
                reap_strays(self._own_pids())
                text = json.dumps(self.state())
                if text != shown:
                    shown = text
                    self._write(text)
                    on_change(json.loads(text))
                if not all_ready:
                    all_ready = self._check_start()
                woken.wait(pause_between_looks(kept.state for kept in self._kept.values()))
        finally:
            self._stop()
            on_change(self.state())

    def _make_forks(self) -> Forks:
        # a standby and the nodes of stream tables run the package of another
        packages = dict.fromkeys(kept.service.package for kept in self._kept.values())
        return Forks(
            [package for package in packages if package],
            common_environment(self._layout, self._ports, self._options),
            self._layout.log("forkserver"),
            self._layout.root,
        )

    def _check_start(self) -> bool:
        """Tell if every service has been ready, and note then how long it took.

        Raises:
            RemoteError: a service ends again and again before it is ready.
        """
        self._require_start()
        all_ready = all(kept.ever_ready for kept in self._kept.values())
        if all_ready:
            note_start(self._layout, time.time() - self._started)
        return all_ready

    def state(self) -> dict[str, Any]:
        """Return what `run/mesh.json` holds."""
        return {
            "supervisor": os.getpid(),
            "started": self._started,
            "last_start_seconds": self._last_start,
            "stopping": self._stopping,
            "ready": len(self._ready()) == len(self._kept),
            "services": {
                name: kept.to_dict(self._layout) | {"stands_still": self._stands_still(name)}
                for name, kept in self._kept.items()
            },
            "ports": served(self._ports, os.environ),
            "settings": addresses(
                self._layout,
                self._ports,
                self._options.services,
                open_kafka=self._options.open_kafka,
            ),
            "clock": self._options.clock,
        }

    def _ready(self) -> set[str]:
        return {name for name, kept in self._kept.items() if kept.state == "ready"}

    def _take_end(self, kept: Kept) -> None:
        status = kept.child.exit_status() if kept.child is not None else None
        if status is not None:
            self._note_end(kept, status, time.monotonic())

    def _step(self, kept: Kept) -> None:
        now = time.monotonic()
        if kept.child is None:
            self._start_in_turn(kept, now)
            return
        rotate(self._layout.log(kept.service.name))
        self._look(kept, now)
        self._watch_start(kept, now)
        self._end_if_silent(kept, now)

    def _start_in_turn(self, kept: Kept, now: float) -> None:
        """Start a service, unless it failed, pauses, or has others to wait for."""
        if kept.state == "failed" or now < kept.not_before:
            return
        first = self._those_before(kept.service)
        if first:
            kept.why = f"{', '.join(first)} first"
            return
        self._start(kept)

    def _those_before(self, service: ServicePlan) -> list[str]:
        """Return the services that one needs and that are not ready yet; where there are none,
        those that get the processor before it.
        """
        missing = [name for name in service.needs if not self._kept[name].ever_ready]
        if missing:
            return missing
        twin = self._kept.get(service.twin)
        if twin is not None and self._is_coming(twin):
            return [twin.service.name]
        return [name for name in service.after if self._goes_first(self._kept[name])]

    def _start(self, kept: Kept) -> None:
        """Start a service, as soon as what it imports is there."""
        spawn = self._spawn_for(kept.service.package)
        if spawn is None:
            kept.why = "imports"
            return
        try:
            kept.child = ChildProcess(
                [*kept.service.command, *kept.service.start_arguments()],
                {**kept.service.environment, "PENSTOCK_RESTARTS": str(kept.restarts)},
                self._layout.log(kept.service.name),
                self._layout.root,
                spawn,
            )
        except ForksGone:
            return  # the next look starts it as a program
        kept.service.when_started(kept.child.pid)
        kept.state = "starting"
        kept.why = ""
        kept.ready_since = None

    def _spawn_for(self, package: str) -> Spawn | None:
        """Return how a service is started; None: not yet."""
        if not package or self._forks is None:
            return execute
        try:
            return self._forks.spawn_for(package)
        except ForksGone:
            return None if self._renew_forks() else execute

    def _renew_forks(self) -> bool:
        """Make another forkserver, if the last one was killed together with several services."""
        assert self._forks is not None
        waiting = sum(kept.child is None for kept in self._kept.values())
        if waiting < 2 or not self._forks.was_killed:
            return False
        self._forks.close()
        self._forks = self._make_forks()
        return True

    @staticmethod
    def _is_coming(kept: Kept) -> bool:
        """True while a service is on its way, and a second one of its kind would only slow it."""
        if kept.child is None:
            return False
        if kept.state == "ready" and kept.ready_since is not None:
            return time.monotonic() - kept.ready_since < _TWIN_ALONE_SECONDS
        return time.time() - kept.child.started < _TWIN_SECONDS

    @staticmethod
    def _goes_first(kept: Kept) -> bool:
        """True while others leave the processor to this service, because it has just started."""
        if kept.ever_ready or kept.state not in ("waiting", "starting"):
            return False
        return kept.child is None or time.time() - kept.child.started < _HEAD_START_SECONDS

    def _own_pids(self) -> set[int]:
        own = {kept.child.pid for kept in self._kept.values() if kept.child is not None}
        if self._forks is not None and self._forks.pid is not None:
            own.add(self._forks.pid)
        return own

    def _stands_still(self, name: str) -> bool:
        return name in self._movements and self._movements[name].stands_still

    def _watch_start(self, kept: Kept, now: float) -> None:
        """Say once that a service that was never ready does not move any more."""
        name = kept.service.name
        if kept.ever_ready or kept.child is None:
            self._movements.pop(name, None)
            return
        movement = self._movements.setdefault(name, Movement(now))
        stood_still = movement.stands_still
        movement.look(now, kept.why, self._layout.log(name), kept.child.pid)
        if movement.stands_still and not stood_still:
            _logger.warning("service does not get on with its start", child=name, why=kept.why)

    def _take_answer(self, kept: Kept, why: str, now: float) -> None:
        """Note that a service is ready, or *why* it is not."""
        kept.why = why
        if kept.ready_since is None or not unresponsive(why):
            kept.silent_since = None
        else:
            kept.silent_since = kept.silent_since or now
        if why:
            kept.state = "starting" if kept.ready_since is None else "unready"
            kept.not_before = now + (0.1 if kept.ready_since is None else 0.5)
            return
        if not kept.ever_ready:
            kept.service.on_ready()
            kept.ever_ready = True
        kept.state = "ready"
        kept.ready_since = kept.ready_since or now
        kept.not_before = now + 2.0

    def _look(self, kept: Kept, now: float) -> None:
        """Take the answer of the last question about readiness, ask the next."""
        if kept.check is not None and kept.check.done():
            self._take_answer(kept, kept.check.result(), now)
            kept.check = None
        if kept.check is None and now >= kept.not_before:
            kept.check = self._checks.submit(kept.service.waits_for)

    def _end_if_silent(self, kept: Kept, now: float) -> None:
        """End a service that was ready and has not answered for too long: it may hear SIGTERM, if
        not SIGKILL.
        """
        assert kept.child is not None
        limit = self._silent_seconds()
        if kept.kill_at is not None:
            if now >= kept.kill_at:
                _logger.warning("service does not stop", child=kept.service.name)
                kept.child.kill()
        elif limit and kept.silent_since is not None and now - kept.silent_since >= limit:
            _logger.warning(
                "service does not answer: it is started again",
                child=kept.service.name,
                why=kept.why,
            )
            kept.child.ask_to_stop()
            kept.kill_at = now + min(stop_seconds(kept.service.name), limit)

    def _silent_seconds(self) -> float:
        """Return how long a service may be silent. While others get on with their first start,
        nobody gets much of the processor: whoever is started again would only take more of it.
        """
        others_start = any(not movement.stands_still for movement in self._movements.values())
        return self._options.silent_seconds * (_PATIENCE_IN_START if others_start else 1)

    def _note_end(self, kept: Kept, status: int, now: float) -> None:
        assert kept.child is not None
        kept.child.kill()  # what it left behind in its group
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        healthy = now - kept.ready_since if kept.ready_since is not None else 0.0
        kept.child = None
        kept.check = None
        kept.ready_since = None
        kept.silent_since = None
        kept.kill_at = None
        if status == EXIT_CONFIG:
            kept.state, kept.why = (
                "failed",
                f"wrong configuration, see {self._layout.log(kept.service.name)}",
            )
            _logger.error("service is configured wrongly", child=kept.service.name)
            return
        has_twin = kept.service.twin in self._ready()
        kept.delay = pause(kept.delay, healthy, has_twin=has_twin)
        kept.not_before = now + kept.delay
        kept.restarts += 1
        kept.state = "backoff"
        kept.why = f"{how}; again in {kept.delay:g} s"
        _logger.warning("service ended", child=kept.service.name, how=how, again_in=kept.delay)

    def _require_start(self) -> None:
        for name, kept in self._kept.items():
            if kept.state == "failed" or (not kept.ever_ready and kept.restarts >= _START_ATTEMPTS):
                raise RemoteError(
                    f"{name} does not start",
                    detail=tail(self._layout, name),
                    hint=f"whole log: {self._layout.log(name)}",
                )

    def _stop_asked(self, number: int, _frame: object) -> None:
        self._stopping = True
        _logger.info("stopping", signal=signal.Signals(number).name)

    def _stop(self) -> None:
        """Stop services first, then what they need; each may finish, but not for ever."""
        self._stopping = True
        self._write(json.dumps(self.state()))
        servers = [
            kept
            for kept in self._kept.values()
            if not kept.service.needs and kept.service.name in _STOP_SECONDS
        ]
        services = [kept for kept in self._kept.values() if kept not in servers]
        for group in (services, servers):
            for kept in group:
                if kept.child:
                    kept.child.ask_to_stop()
            deadline = time.monotonic() + max(
                (stop_seconds(k.service.name) for k in group), default=0
            )
            for kept in group:
                _await_end(kept, deadline)
        if self._forks is not None:
            self._forks.close()
        self._checks.shutdown(cancel_futures=True)
        end_orphans(self._layout)
        self._layout.empty_temporary()
        self._layout.state_file.unlink(missing_ok=True)
        self._lock.close()

    def _write(self, text: str) -> None:
        fresh = self._layout.state_file.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(self._layout.state_file)


def stop_seconds(service: str) -> float:
    """Return how long a service may take to stop before it is killed."""
    return _STOP_SECONDS.get(service, _STOP_SECONDS_SERVICE)


def _lock(layout: Layout) -> IO[str]:
    # - held as long as the supervisor lives
    file = open(layout.lock_file, "w", encoding="utf-8")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as wrong:
        file.close()
        hint = "`penstock status` shows it, `penstock down` stops it; --data-dir starts another"
        raise ConfigError(f"a mesh runs already in {layout.root}", hint=hint) from wrong
    return file


def _await_end(kept: Kept, deadline: float) -> None:
    """Wait for a service to finish; after *deadline* end it."""
    if kept.child:
        if not kept.child.wait(max(deadline - time.monotonic(), 0.01)):
            _logger.warning("service did not stop in time", child=kept.service.name)
        kept.child.kill()
    kept.child = None
    kept.state = "stopped"
    kept.why = ""

"""Which measurements there are, and in which order they run. A part that fails is named in the
results; the others run on.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

from bench import (
    cost,
    crossovers,
    federation,
    gateway,
    history,
    kinds,
    latency,
    partitions,
    recovery,
    rest,
    select,
    start,
    state,
    tables,
    throughput,
    windows,
)
from bench.profile import Profile
from bench.report import HERE, Recorder
from bench.stage import Stage, stage
from penstock.setup.service_packages import ALL_SERVICES

Part = Callable[[Stage, Profile, Recorder], None]
_STREAM_SERVICES = ("kafka", "redis", "gateway", "spark")


def _attempt(name: str, record: Recorder, action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as error:
        traceback.print_exc()
        detail = getattr(error, "detail", "")
        record.problem(f"{name}: {type(error).__name__}: {error} {detail}"[:600])


def _staged(
    services: tuple[str, ...],
    parts: dict[str, Part],
    profile: Profile,
    record: Recorder,
    chosen: str,
) -> None:
    """Run parts on one mesh."""
    wanted = {
        name: part for name, part in parts.items() if name.startswith(tuple(chosen.split(",")))
    }
    if not wanted:
        return
    with stage(services) as on:
        for name, part in wanted.items():
            _attempt(name, record, lambda part=part: part(on, profile, record))  # type: ignore[misc]


def _spine(profile: Profile, record: Recorder, chosen: str) -> None:
    # the store and the notifier would share the cores with what is measured: rates of the stream
    # jobs are theirs alone
    alone: dict[str, Part] = {"throughput": throughput.measure, "streams": cost.many_streams}
    whole: dict[str, Part] = {
        "memory": cost.memory,
        "create_stream": cost.create_stream,
        "gateway": gateway.measure,
        "latency": latency.measure,
        "fill_history": history.measure,
        "partitions": partitions.measure,
    }
    _attempt(
        "mesh of the stream jobs",
        record,
        lambda: _staged(_STREAM_SERVICES, alone, profile, record, chosen),
    )
    _attempt("whole mesh", record, lambda: _staged(ALL_SERVICES, whole, profile, record, chosen))


def _windows(profile: Profile, record: Recorder, chosen: str) -> None:
    if not chosen or "windows_kernel".startswith(tuple(chosen.split(","))):
        windows.measure(profile, record)
    through: dict[str, Part] = {"windows_stack": kinds.measure, "state": state.measure}
    _attempt(
        "mesh of the stream jobs",
        record,
        lambda: _staged(_STREAM_SERVICES, through, profile, record, chosen),
    )


def _tables(profile: Profile, record: Recorder, _: str) -> None:
    def run() -> None:
        with stage(
            ("kafka", "redis", "gateway"), {"PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false"}, nodes=3
        ) as on:
            tables.measure(on, profile, record)

    _attempt("stream tables", record, run)


def _start(profile: Profile, record: Recorder, chosen: str) -> None:
    if not chosen or "start".startswith(tuple(chosen.split(","))):
        _attempt("start", record, lambda: start.measure(profile, record))


def _select(profile: Profile, record: Recorder, chosen: str) -> None:
    if not chosen or "select".startswith(tuple(chosen.split(","))):
        _attempt("select", record, lambda: select.measure(profile, record))


def _recovery(profile: Profile, record: Recorder, chosen: str) -> None:
    _attempt("recovery", record, lambda: recovery.measure(profile, record, chosen))


def _rest(profile: Profile, record: Recorder, chosen: str) -> None:
    if chosen and not "rest".startswith(tuple(chosen.split(","))):
        return

    def run() -> None:
        with stage(ALL_SERVICES, {"PENSTOCK_SPARK_IDLE_SECONDS": str(rest.IDLE_SECONDS)}) as on:
            rest.measure(on, profile, record)

    _attempt("rest", record, run)


SUITES: dict[str, Callable[[Profile, Recorder, str], None]] = {
    "crossovers": crossovers.measure,
    "windows": _windows,
    "spine": _spine,
    "federation": federation.measure,
    "tables": _tables,
    "select": _select,
    "start": _start,
    "recovery": _recovery,
    "rest": _rest,
}


def run(only: str, profile: Profile, chosen: str = "") -> int:
    """Run one suite, some parts or all; returns the exit status. Quick runs leave bench/RESULTS.md
    alone.
    """
    directory = HERE if profile.name != "quick" else Path(".penstock", "bench")
    directory.mkdir(parents=True, exist_ok=True)
    record = Recorder(profile.name, only or chosen, directory, keep=bool(only or chosen))
    try:
        for name, suite in SUITES.items():
            if only in ("", name):
                suite(profile, record, chosen)
        if chosen and not record.lines and not record.problems:
            record.problem(
                f"no part{f' of {only}' if only else ''} starts with {chosen}: see bench/README.md"
            )
    finally:
        record.close()
    return 1 if record.problems else 0

"""What is wrong with a mesh and what to do about it: pure decisions, facts in, findings out.

Owns the judgements only; `penstock/cli/doctor.py` gathers the facts. Refused: mending anything by
itself.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Grade = Literal["ok", "look", "bad"]
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LITTLE_BYTES = 2 << 30
_LITTLE_SHARE = 0.05
_FILES = 4096
#: what shows targets of NOTIFY that are behind, and records that could not be used
WAITING_EVENTS = (
    "SELECT stream_name, events_waiting, message FROM information_schema.ins_streams"
    " WHERE events_waiting > 0"
)
NEWEST_DEAD_LETTERS = (
    "SELECT time, code, reason, topic, value FROM information_schema.ins_dead_letters"
    " ORDER BY time DESC LIMIT 20"
)


@dataclass(frozen=True)
class Finding:
    """`do` is empty when nothing has to be done."""

    grade: Grade
    what: str
    do: str = ""


def services(state: Mapping[str, Any] | None) -> list[Finding]:
    """What the supervisor says of each service (`penstock.mesh.state.read_state`)."""
    if state is None:
        return [
            Finding(
                "bad",
                "no mesh runs in this data directory",
                "penstock up; or name another with --data-dir",
            )
        ]
    found = []
    for name, service in state["services"].items():
        if service["state"] == "failed":
            found.append(
                Finding(
                    "bad",
                    f"{name} is configured wrongly",
                    f"penstock logs {name} says which setting; mend it, then penstock restart"
                    f" {name}",
                )
            )
        elif service["state"] != "ready":
            found.append(
                Finding(
                    "bad",
                    f"{name} is {service['state']}: {service['why'] or 'no answer yet'}",
                    f"penstock logs {name}",
                )
            )
        elif service["restarts"]:
            times = "once" if service["restarts"] == 1 else f"{service['restarts']} times"
            found.append(
                Finding(
                    "look",
                    f"{name} died and was started again {times}",
                    f"penstock logs {name} -n 200 shows how it ended",
                )
            )
        else:
            found.append(Finding("ok", f"{name} is ready"))
    return found


def secrets(modes: Mapping[str, int]) -> list[Finding]:
    """Modes of the directory of secrets and its files, by path."""
    open_ = [path for path, mode in modes.items() if stat.S_IMODE(mode) & 0o077]
    if open_:
        return [
            Finding(
                "bad", f"others may read {path}", f"chmod go-rwx {path}, and change that password"
            )
            for path in sorted(open_)
        ]
    return [Finding("ok", "secrets are for their owner only")] if modes else []


def disk(path: str, free: int, total: int) -> list[Finding]:
    """Space where the data directory is."""
    words = f"{free / (1 << 30):.1f} GiB of {total / (1 << 30):.0f} are free for {path}"
    if free < _LITTLE_BYTES / 4:
        return [
            Finding(
                "bad",
                words,
                "make room now: Kafka and the store stop when the disk is full. KEEP of a database"
                " deletes old rows",
            )
        ]
    if free < _LITTLE_BYTES or free < total * _LITTLE_SHARE:
        return [
            Finding(
                "look", words, "make room, or set KEEP on databases whose old rows nobody needs"
            )
        ]
    return [Finding("ok", words)]


def open_files(limit: int) -> list[Finding]:
    """Judge how many files a process may have open."""
    if 0 <= limit < _FILES:
        return [
            Finding(
                "look",
                f"a process may open {limit} files",
                f"ulimit -n {_FILES} or more: every segment and connection is one",
            )
        ]
    return [Finding("ok", "enough files may be open")]


def exposure(
    hosts: Iterable[str], *, tls: bool, password: str, broker_asks: bool, embedded_broker: bool
) -> list[Finding]:
    """Judge what others on the network could reach. *hosts*: addresses that services bind."""
    outside = sorted({h for h in hosts if h not in _LOOPBACK})
    found = []
    if outside:
        where = ", ".join(outside)
        if not tls:
            found.append(
                Finding(
                    "bad",
                    f"services listen on {where} without TLS: passwords and rows cross the network"
                    " in the clear",
                    "docs/security.md#tls",
                )
            )
        if len(password) < 12:
            found.append(
                Finding(
                    "bad",
                    f"services listen on {where} and root's password has {len(password)}"
                    " characters",
                    "choose a longer PENSTOCK_PASSWORD",
                )
            )
    else:
        found.append(Finding("ok", "services listen on this machine only"))
    if embedded_broker or not broker_asks:
        found.append(
            Finding(
                "look",
                "Kafka asks nobody who they are: whoever reaches its port has every table",
                "docs/security.md#kafka-and-redis",
            )
        )
    return found


def streams(rows: Sequence[tuple[str, str, str]]) -> list[Finding]:
    """(name, status, message) of each stream."""
    found = []
    for name, status, message in rows:
        if status == "failed":
            found.append(
                Finding(
                    "bad",
                    f"stream {name} stopped: {message}",
                    "mend the cause, then begin anew: CREATE OR REPLACE STREAM … FILL_HISTORY 1"
                    f" (SHOW CREATE STREAM {name} has the rest)",
                )
            )
        elif status == "paused":
            found.append(
                Finding(
                    "look",
                    f"stream {name} is paused{': ' + message if message else ''}",
                    f"RESUME STREAM {name}",
                )
            )
        elif status == "throttled":
            found.append(
                Finding(
                    "look",
                    f"stream {name} is {message}",
                    f"raise its quota: ALTER STREAM {name} MAX_RESULTS …",
                )
            )
        elif status == "init":
            found.append(
                Finding(
                    "look",
                    f"stream {name} is not live everywhere: {message}",
                    "is spark_jobs ready, and PENSTOCK_SPARK_SLOTS large enough?",
                )
            )
        elif message:
            found.append(
                Finding(
                    "look",
                    f"stream {name}: {message}",
                    "start the target, or replace the stream by one with another;"
                    f" what waits: {_statement(WAITING_EVENTS)}",
                )
            )
    return found or [Finding("ok", f"{len(rows)} streams run" if rows else "there are no streams")]


def views(rows: Sequence[tuple[str, str, str]]) -> list[Finding]:
    """(name, status, last error) of each materialized view; nothing when all of them run."""
    found = []
    for name, status, message in rows:
        resume = f"SYSTEM RESUME MATERIALIZED VIEW {name}"
        if status == "stopped":
            found.append(
                Finding("bad", f"view {name} stopped: {message}", f"mend its target, then {resume}")
            )
        elif status == "paused":
            found.append(Finding("look", f"view {name} is paused", resume))
        elif status in ("error", "retrying"):
            hint = "it goes on by itself once that is mended; docs/federation.md#materialized-views"
            found.append(Finding("look", f"view {name} waits: {message}", hint))
    return found


def dead_letters(count: int, newest: Sequence[tuple[str, str]] = ()) -> list[Finding]:
    """Report records and rows that could not be used in the last week.

    Args:
        newest: code and reason of the newest one, where the gateway says.
    """
    if count:
        why = "".join(f"; the newest: {code}, {reason}" for code, reason in newest)
        return [
            Finding(
                "look",
                f"{count} dead letters{why}",
                f"each says why: {_statement(NEWEST_DEAD_LETTERS)}; docs/errors.md#dead-letters",
            )
        ]
    return [Finding("ok", "no dead letters")]


def _statement(sql: str) -> str:
    """Return the command that shows what *sql* asks for."""
    return f'penstock sql "{sql}"'


def worst(findings: Iterable[Finding]) -> Grade:
    grades = {f.grade for f in findings}
    if "bad" in grades:
        return "bad"
    return "look" if "look" in grades else "ok"

from __future__ import annotations

from typing import Any

import pytest

from penstock.mesh import doctor
from penstock.sql import parse_one


def service(state: str = "ready", why: str = "", restarts: int = 0) -> dict[str, Any]:
    return {"state": state, "why": why, "restarts": restarts}


def grades(findings: list[doctor.Finding]) -> list[str]:
    return [f.grade for f in findings]


def test_services() -> None:
    assert grades(doctor.services(None)) == ["bad"]
    state = {
        "services": {
            "a": service(),
            "b": service(restarts=2),
            "c": service("unready", "redis: refused"),
            "d": service("failed"),
        }
    }
    found = doctor.services(state)
    assert grades(found) == ["ok", "look", "bad", "bad"]
    assert "redis: refused" in found[2].what and "penstock logs d" in found[3].do


def test_secrets_that_others_may_read() -> None:
    assert grades(doctor.secrets({"/s": 0o40700, "/s/a": 0o100600})) == ["ok"]
    assert [f.do.split(",")[0] for f in doctor.secrets({"/s": 0o40755, "/s/a": 0o100640})] == [
        "chmod go-rwx /s",
        "chmod go-rwx /s/a",
    ]
    assert doctor.secrets({}) == []


@pytest.mark.parametrize(
    ("free", "grade"), [(100 << 30, "ok"), (1 << 30, "look"), (100 << 20, "bad")]
)
def test_disk(free: int, grade: str) -> None:
    assert grades(doctor.disk("/d", free, 200 << 30)) == [grade]


def test_open_files() -> None:
    assert grades(doctor.open_files(1024)) == ["look"] and grades(doctor.open_files(-1)) == grades(
        doctor.open_files(65_536)
    ) == ["ok"]


def test_exposure() -> None:
    def found(hosts: list[str], **more: Any) -> list[str]:
        facts = {
            "tls": True,
            "password": "x" * 24,
            "broker_asks": True,
            "embedded_broker": False,
            **more,
        }
        return grades(doctor.exposure(hosts, **facts))

    assert found(["127.0.0.1"]) == ["ok"]
    assert found(["127.0.0.1"], tls=False, password="x") == ["ok"]
    assert found(["0.0.0.0"], tls=False) == ["bad"] and found(["0.0.0.0"], password="short") == [
        "bad"
    ]
    assert found(["0.0.0.0"]) == []
    assert (
        found(["127.0.0.1"], embedded_broker=True)
        == ["ok", "look"]
        == found(["127.0.0.1"], broker_asks=False)
    )


def test_streams_and_dead_letters() -> None:
    rows = [
        ("a", "ready", ""),
        ("b", "failed", "no column x"),
        ("c", "paused", ""),
        ("d", "init", "live in 0 of 4 partitions"),
    ]
    rows.append(("e", "throttled", "throttled: MAX_RESULTS is 5 a second, and it is 9 rows ahead"))
    rows.append(
        ("f", "ready", "NOTIFY target ws://h:1/n is down: ConnectionRefusedError; 3 events wait")
    )
    found = doctor.streams(rows)
    assert "ws://h:1/n is down" in found[4].what and "3 events wait" in found[4].what
    assert (
        grades(found) == ["bad", "look", "look", "look", "look"] and "no column x" in found[0].what
    )
    assert grades(doctor.streams(rows[:1])) == grades(doctor.streams([])) == ["ok"]
    assert grades(doctor.dead_letters(0)) == ["ok"] and grades(doctor.dead_letters(3)) == ["look"]
    assert f'penstock sql "{doctor.NEWEST_DEAD_LETTERS}"' in doctor.dead_letters(3)[0].do


def test_statements_that_are_shown_can_be_run() -> None:
    for statement in (doctor.WAITING_EVENTS, doctor.NEWEST_DEAD_LETTERS):
        parse_one(statement)
        assert not set(statement) & set('"`$')  # a shell takes it in double quotes


def test_a_target_that_is_down_comes_with_the_statement_that_shows_it() -> None:
    [found] = doctor.streams([("s", "ready", "ws://there: refused; 7 events wait")])
    assert "ws://there: refused" in found.what
    assert f'penstock sql "{doctor.WAITING_EVENTS}"' in found.do


def test_views() -> None:
    rows = [
        ("d.a", "running", ""),
        ("d.b", "stopped", "E_ROW: too long (row 3)"),
        ("d.c", "paused", ""),
        ("d.d", "retrying", "E_LINK_LOST"),
    ]
    found = doctor.views(rows)
    assert grades(found) == ["bad", "look", "look"] and doctor.views(rows[:1]) == []
    assert (
        "too long (row 3)" in found[0].what and "SYSTEM RESUME MATERIALIZED VIEW d.b" in found[0].do
    )


def test_the_worst_decides() -> None:
    assert doctor.worst([]) == "ok"
    assert doctor.worst([doctor.Finding("ok", "a"), doctor.Finding("look", "b")]) == "look"
    assert doctor.worst(doctor.services(None)) == "bad"

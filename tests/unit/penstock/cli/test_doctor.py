"""`penstock doctor`: what is found is said, worst first, and the exit status follows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli import app, diagnosis
from penstock.errors import BusError, ConfigError
from penstock.mesh.doctor import Finding
from penstock.mesh.layout import Layout

_RUNNING = {"PENSTOCK_KAFKA_BOOTSTRAP": "127.0.0.1:1", "PENSTOCK_KAFKA_SECURITY": "PLAINTEXT"}


def _state(**given: Any) -> dict[str, Any]:
    service = {"state": "ready", "why": "", "restarts": 0}
    return {"ready": True, "settings": _RUNNING, "services": {"kafka": service}, **given}


def _run(root: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["doctor", "--data-dir", str(root), *words])


@pytest.fixture(autouse=True)
def _no_mesh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "read_state", lambda layout: None)


def test_without_a_mesh_something_has_to_be_done(tmp_path):
    done = _run(tmp_path)
    assert done.exit_code == 1
    assert done.stdout.startswith("bad")
    assert "→" in done.stdout


def test_quiet_leaves_out_what_is_in_order(tmp_path):
    (tmp_path / "secrets").mkdir(mode=0o700)
    assert "\nok " in _run(tmp_path).stdout
    assert "\nok " not in _run(tmp_path, "-q").stdout


def test_the_worst_is_said_first(capsys):
    diagnosis._print([Finding("ok", "fine"), Finding("bad", "broken", "mend it")], quiet=False)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["bad", "→", "ok"]


def test_secrets_that_others_read_are_found(tmp_path):
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o700)
    (secrets / "root.password").touch(mode=0o600)
    assert "chmod" not in _run(tmp_path).stdout
    (secrets / "root.password").chmod(0o644)
    assert f"chmod go-rwx {secrets / 'root.password'}" in _run(tmp_path).stdout


def test_a_mesh_that_is_in_order_has_no_bad_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(diagnosis, "read_state", lambda layout: _state())
    asked: list[str] = []
    monkeypatch.setattr(
        diagnosis, "_ask_mesh", lambda layout, options, bootstrap: asked.append(bootstrap) or []
    )
    monkeypatch.setattr(diagnosis.resource, "getrlimit", lambda what: (1 << 20, 1 << 20))
    done = _run(tmp_path)
    assert done.exit_code == 0, done.stdout
    assert asked == ["127.0.0.1:1"]


def test_a_mesh_that_is_not_ready_is_not_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(diagnosis, "read_state", lambda layout: _state(ready=False))
    monkeypatch.setattr(diagnosis, "_ask_mesh", lambda *given: pytest.fail("it was asked"))
    assert _run(tmp_path).exit_code in (0, 1)


def test_hosts_of_single_services_are_looked_at(monkeypatch):
    monkeypatch.setenv("PENSTOCK_STORE_HOST", "0.0.0.0")
    monkeypatch.setenv("PENSTOCK_HOSTILE", "no host of a service")
    assert "0.0.0.0" in diagnosis._hosts_of_services()
    assert "no host of a service" not in diagnosis._hosts_of_services()


def test_the_password_is_the_one_that_is_set_or_made(tmp_path):
    layout = Layout(tmp_path)
    unset: Any = SimpleNamespace(password=None)
    assert diagnosis._password(unset, layout) == ""
    layout.secrets.mkdir()
    (layout.secrets / "root.password").write_text("made\n", encoding="utf-8")
    assert diagnosis._password(unset, layout) == "made"
    given: Any = SimpleNamespace(password=SimpleNamespace(get_secret_value=lambda: "given"))
    assert diagnosis._password(given, layout) == "given"


# -------------------------------------------------------------------- a mesh that runs


class _Client:
    """A gateway with one stream and one view."""

    def query(self, text: str) -> Any:
        if "ins_streams" in text:
            return SimpleNamespace(rows=[("s", "failed", "too large")])
        if "ins_dead_letters" in text:
            return SimpleNamespace(rows=[("E_UNKNOWN_SCHEMA", "no such schema")])
        return SimpleNamespace(rows=[("db", "v", "error", None)])


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a mesh says, whose gateway and brokers a test may take away."""
    made = SimpleNamespace(gateway=True, kafka=True)

    @contextmanager
    def connection(*given: Any) -> Iterator[_Client]:
        if not made.gateway:
            raise ConfigError("nobody there", hint="start one")
        yield _Client()

    def admin(*given: Any, **more: Any) -> Any:
        if not made.kafka:
            raise BusError("no brokers")
        return SimpleNamespace(
            end_offsets=lambda places: dict.fromkeys(places, 7),
            start_offsets=lambda places: dict.fromkeys(places, 2),
        )

    monkeypatch.setattr(diagnosis, "connection", connection)
    monkeypatch.setattr(diagnosis.bus, "secure", lambda options: None)
    monkeypatch.setattr(diagnosis.bus, "Admin", admin)
    made.found = lambda: [
        (f.grade, f.what) for f in diagnosis._ask_mesh(Layout(tmp_path), {}, "127.0.0.1:1")
    ]
    return made


def test_streams_views_and_dead_letters_are_asked_for(ask):
    text = " ".join(what for _, what in ask.found())
    assert "too large" in text
    assert "db.v" in text
    assert "5 dead letters; the newest: E_UNKNOWN_SCHEMA, no such schema" in text


def test_who_does_not_answer_is_bad(ask):
    ask.gateway = ask.kafka = False
    assert [grade for grade, _ in ask.found()] == ["bad", "bad"]
    text = " ".join(what for _, what in ask.found())
    assert "nobody there" in text and "no brokers" in text

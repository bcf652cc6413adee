"""penstock debug bundle: what is in it, and that no secret of the mesh is."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from pathlib import Path
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from penstock.cli import app, debug
from penstock.cli.bundle import HIDDEN, Redactor, is_secret_name, pack, secrets_of
from penstock.errors import ConfigError
from penstock.mesh.layout import Layout

SECRETS = {
    "root.password": 'pa"ss wörd/7',
    "redis.password": "Zm9vYmFy-redis-secret",
    "token.key": "k" * 48,
    "backup.password": "back-up-key",
}
SET = {
    "PENSTOCK_TLS_KEY_PASSWORD": "of-the-key",
    "PENSTOCK_PASSWORD_FILE": "/run/secrets/password",
    "PENSTOCK_PORT_BASE": "7700",
    "PENSTOCK_STORE_URL": "s3://me:my-own-login@bucket",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
}


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    made = Layout(tmp_path / "mesh")
    made.secrets.mkdir(parents=True)
    made.logs.mkdir()
    for name, value in SECRETS.items():
        (made.secrets / name).write_text(f"{value}\n", encoding="utf-8")
    for name, value in SET.items():
        monkeypatch.setenv(name, value)
    return made


def forms(secret: str) -> list[str]:
    """Every way in which a log may have a secret."""
    login = base64.b64encode(f"root:{secret}".encode()).decode()
    return [
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret, safe=""),
        login,
    ]


def unpack(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        return {
            entry.name.removeprefix("penstock-bundle/"): archive.extractfile(entry).read().decode()  # type: ignore[union-attr]
            for entry in archive
        }


def test_no_secret_is_in_it(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = [*SECRETS.values(), "of-the-key", "wJalrXUtnFEMI", "my-own-login"]
    told = "\n".join(
        json.dumps({"event": f"x {form} y"}) + f"\nAuthorization: Basic {form}\nplain {form}"
        for secret in hidden
        for form in forms(secret)
    )
    (layout.log("gateway")).write_text(told, encoding="utf-8")
    (layout.log("audit")).write_text("who did what", encoding="utf-8")
    state = {
        "ready": True,
        "ports": {},
        "services": {"gateway": {"state": "ready", "why": f"refused: {SECRETS['token.key']}"}},
        "settings": {"PENSTOCK_REDIS_PASSWORD": SECRETS["redis.password"], "PENSTOCK_X": "1"},
    }
    monkeypatch.setattr(debug, "read_state", lambda _: state)
    monkeypatch.setattr(debug, "_metrics", lambda *_: {"metrics/gateway.txt": "up 1"})
    monkeypatch.setattr(debug, "_answers", lambda _: {"streams.ndjson": f"{SECRETS}\n"})
    out = tmp_path / "bundle.tar.gz"
    done = CliRunner().invoke(
        app, ["debug", "bundle", "--out", str(out), "--data-dir", str(layout.root)]
    )
    assert done.exit_code == 0, done.exception
    files = unpack(out)
    assert files.keys() == {
        "versions.txt",
        "machine.txt",
        "settings.txt",
        "status.json",
        "logs/gateway.log",
        "metrics/gateway.txt",
        "streams.ndjson",
    }
    for name, text in files.items():
        for secret in hidden:
            assert not [form for form in forms(secret) if form in text], (name, secret)
    assert "plain" in files["logs/gateway.log"]
    assert "PENSTOCK_PORT_BASE=7700" in files["settings.txt"]
    assert "PENSTOCK_PASSWORD_FILE=/run/secrets/password" in files["settings.txt"]
    assert f"PENSTOCK_TLS_KEY_PASSWORD={HIDDEN}" in files["settings.txt"]
    assert "AWS" not in files["settings.txt"]
    assert json.loads(files["status.json"])["running"] is True
    assert out.stat().st_mode & 0o077 == 0


def test_a_mesh_that_does_not_run_is_packed_too(layout: Layout, tmp_path: Path) -> None:
    out = tmp_path / "b.tar.gz"
    done = CliRunner().invoke(
        app, ["debug", "bundle", "--out", str(out), "--data-dir", str(layout.root)]
    )
    assert done.exit_code == 0, done.exception
    assert json.loads(unpack(out)["status.json"]) == {"running": False}
    assert "secrets/ 4 files" in unpack(out)["machine.txt"]


def test_where_nothing_is_it_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["debug", "bundle", "--data-dir", str(tmp_path / "no")])
    assert isinstance(done.exception, ConfigError)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("PENSTOCK_PASSWORD", True),
        ("PENSTOCK_METRICS_KEY", True),
        ("PENSTOCK_TOKEN_KEY", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("PENSTOCK_PASSWORD_FILE", False),
        ("PENSTOCK_KEYSPACE", False),
        ("PENSTOCK_PORT_BASE", False),
    ],
)
def test_names_say_what_is_secret(name: str, is_secret: bool) -> None:
    assert is_secret_name(name) is is_secret


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("s3://me:pw@host/x", "s3://***@host/x"),
        ("Bearer eyJhbGciOi.x.y", "Bearer ***"),
        ("CREATE USER u PASS 'x'", "CREATE USER u PASS '***'"),
        ("sasl.password=abc, x=1", "sasl.password=***, x=1"),
        ('{"token": "abc", "n": 1}', '{"token": "***", "n": 1}'),
        ("nothing is secret here, true or false", "nothing is secret here, true or false"),
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str, made: str) -> None:
    assert Redactor([]).clean(text) == made


def test_short_and_plain_values_do_not_tear_text(tmp_path: Path) -> None:
    assert secrets_of(tmp_path, {"A_TOKEN": "true", "B_KEY": "abc", "C_KEY": "abcd"}) == ["abcd"]


def test_an_archive_has_its_folder(layout: Layout) -> None:
    data = pack({"a/b.txt": "x"}, Redactor([]), 0.0)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == ["penstock-bundle/a/b.txt"]

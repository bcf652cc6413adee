"""Commands around a mesh, as far as they need none that runs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner, Result

from penstock.auth.tokens import Tokens
from penstock.cli import app, mesh
from penstock.cli.login_link import login_link
from penstock.errors import AuthError, ConfigError
from penstock.mesh.layout import DEFAULT_PORT_BASE, PORT_NAMES, Layout
from penstock.runtime.clock import SystemClock


def _run(*words: str, root: Path) -> Result:
    return CliRunner().invoke(app, [*words, "--data-dir", str(root)])


# -------------------------------------------------------------------- ports


def test_ports_follow_their_base():
    ports = mesh._ports(str(DEFAULT_PORT_BASE), [])
    assert ports["gateway"] == DEFAULT_PORT_BASE
    assert mesh._ports("9000", [])["kafka"] == 9000 + PORT_NAMES["kafka"]


def test_single_ports_can_be_set():
    ports = mesh._ports("9000", ["kafka=1234", "redis=99"])
    assert (ports["kafka"], ports["redis"], ports["gateway"]) == (1234, 99, 9000)
    picked = mesh._ports("auto", ["kafka=1234"])
    assert picked["kafka"] == 1234
    assert set(picked.by_name) == set(PORT_NAMES)


@pytest.mark.parametrize(
    ("base", "own", "words"),
    [
        ("many", [], "not a port: many"),
        ("-1", [], "not a port: -1"),
        ("9000", ["kafka"], "not NAME=NUMBER: kafka"),
        ("9000", ["kafka=x"], "not NAME=NUMBER: kafka=x"),
        ("9000", ["tea=1"], "no such port: tea"),
        ("70000", [], "not a port"),
    ],
)
def test_what_is_no_port_is_said(base, own, words):
    with pytest.raises(ConfigError, match=words):
        mesh._ports(base, own)


# -------------------------------------------------------------------- without a mesh


@pytest.mark.parametrize("words", [("login",), ("restart", "store")])
def test_what_needs_a_mesh_says_that_none_runs(tmp_path, words):
    done = _run(*words, root=tmp_path)
    assert isinstance(done.exception, ConfigError)
    assert "no mesh runs here" in str(done.exception)


def test_the_state_of_no_mesh_is_a_failure(tmp_path):
    assert _run("status", root=tmp_path).exit_code == 1


def test_there_is_nothing_to_stop(tmp_path):
    assert _run("down", root=tmp_path).exit_code == 0


def test_a_clock_that_nobody_has_is_refused_before_anything_starts(tmp_path):
    done = _run("up", "--clock", "sundial", root=tmp_path)
    assert "no such clock: sundial" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_service_that_nobody_has_is_refused_too(tmp_path):
    done = _run("up", "--services", "kafka,attic", root=tmp_path)
    assert isinstance(done.exception, ConfigError)
    assert "attic" in str(done.exception)


# -------------------------------------------------------------------- logging in


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.logs.mkdir()
    return made


def test_a_login_link_is_good_for_root(layout):
    layout.secrets.mkdir()
    password = layout.secret("root").read_text(encoding="utf-8").strip()
    link = urlsplit(login_link(layout, "http://127.0.0.1:7700"))
    assert f"{link.scheme}://{link.netloc}{link.path}" == "http://127.0.0.1:7700/login"
    [token] = parse_qs(link.query)["token"]
    key = layout.token_key.read_text(encoding="utf-8").strip()
    tokens = Tokens(key, SystemClock())
    claims = tokens.read(token, "login")
    assert (claims.user, claims.mark) == ("root", tokens.root_mark(password))
    with pytest.raises(AuthError):
        tokens.read(token)  # it opens nothing by itself

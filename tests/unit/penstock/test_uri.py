"""Sessions of this process, and what a URI resolves to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock import uri as uris
from penstock.client.connection_options import ConnectionOptions
from penstock.errors import PenstockError, RemoteError
from penstock.link.address import DEFAULT_PORT, DEFAULT_TLS_PORT, Address
from penstock.link.remote_request import MirrorOptions, RemoteTarget
from penstock.link.uris import UriError, parse


@pytest.fixture(autouse=True)
def no_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uris, "_sessions", {})
    monkeypatch.setattr(uris, "_default", [])


class Opened:
    """What was opened: a live table or a snapshot, of which target and with which options."""

    def __init__(self) -> None:
        self.error: PenstockError | None = None
        self.kind = ""
        self.target: RemoteTarget | None = None
        self.options: MirrorOptions | None = None

    def _open(self, kind: str, target: RemoteTarget, options: MirrorOptions) -> Opened:
        if self.error is not None:
            raise self.error
        self.kind, self.target, self.options = kind, target, options
        return self

    def table(self, target: RemoteTarget, options: MirrorOptions) -> Opened:
        return self._open("table", target, options)

    def snapshot(self, target: RemoteTarget, options: MirrorOptions) -> Opened:
        return self._open("snapshot", target, options)

    def start(self) -> Opened:
        return self


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    made = Opened()
    monkeypatch.setattr(uris, "RemoteTable", made.table)
    monkeypatch.setattr(uris, "snapshot", made.snapshot)
    yield made


def session(url: str, **options: Any) -> uris.UriSession:
    return uris.session(url, **{"user": "ann", "password": "secret", **options})


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("ws://far:1", Address("far", 1, "ann", "secret")),
        ("ws://far", Address("far", DEFAULT_PORT, "ann", "secret")),
        ("wss://far/", Address("far", DEFAULT_TLS_PORT, "ann", "secret", True)),
        ("wss://[::1]:5", Address("::1", 5, "ann", "secret", True)),
    ],
)
def test_a_room_is_its_own_address(url: str, address: Address) -> None:
    made = session(url)
    assert made.replicas == (address,)
    assert made.url == url.rstrip("/")
    assert "secret" not in repr(made)


def test_authorities_go_with_the_address() -> None:
    assert session("wss://far", ca_file="/ca.pem").replicas[0].ca_file == "/ca.pem"


class Gateway:
    """A connection to a gateway that tells where links are answered."""

    told = "ws://0.0.0.0:9"

    def __init__(self, url: str, user: str, password: str, *, options: ConnectionOptions) -> None:
        assert (user, password) == ("ann", "secret")

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def federation_url(self) -> str:
        return self.told


@pytest.mark.parametrize(
    ("told", "host", "port", "secure"),
    [
        ("ws://0.0.0.0:9", "gate", 9, False),
        ("ws://[::]:9", "gate", 9, False),
        ("wss://room:9", "room", 9, True),
        ("ws://room", "room", DEFAULT_PORT, False),
    ],
)
def test_a_gateway_is_asked_where_links_are_answered(
    monkeypatch: pytest.MonkeyPatch, told: str, host: str, port: int, secure: bool
) -> None:
    monkeypatch.setattr(uris, "Connection", Gateway)
    monkeypatch.setattr(Gateway, "told", told)
    made = session("http://gate:7700")
    (address,) = made.replicas
    assert (address.host, address.port, address.secure) == (host, port, secure)
    assert uris.session_for("http://gate:7700") is made
    assert uris.session_for(f"ws://{host}:{port}") is made


@pytest.mark.parametrize("url", ["ftp://far", "far:7700", "", "http://", "ws://"])
def test_what_is_no_deployment_is_refused(url: str) -> None:
    with pytest.raises(UriError):
        session(url)


def test_a_url_holds_no_credentials() -> None:
    with pytest.raises(UriError, match="no credentials") as caught:
        session("ws://ann:secret@far")
    assert "secret" not in str(caught.value)


def test_the_first_session_is_the_default_unless_another_is() -> None:
    with pytest.raises(RemoteError) as caught:
        uris.session_for()
    assert caught.value.code == "E_NO_SESSION"
    first = session("ws://a")
    assert uris.session_for() is first
    session("ws://b")
    assert uris.session_for() is first
    third = session("ws://c", default=True)
    assert uris.session_for() is third


def test_a_session_may_be_no_default() -> None:
    made = session("ws://a", default=False)
    with pytest.raises(RemoteError, match="the local deployment"):
        uris.session_for()
    assert uris.session_for("ws://a") is made


def test_a_session_is_found_by_host_and_port_only() -> None:
    made = session("ws://far")
    assert uris.session_for(f"ws://far:{DEFAULT_PORT}") is made
    with pytest.raises(RemoteError) as caught:
        uris.session_for("ws://far:1")
    assert caught.value.code == "E_NO_SESSION"


def test_a_name_is_looked_up_in_the_default_deployment(opened: Opened) -> None:
    home = session("ws://a")
    assert uris.resolve("pq://plant/scope/t") is opened  # type: ignore[comparison-overlap]
    assert (opened.kind, opened.target) == ("table", RemoteTarget(home.replicas, "t", "plant"))
    other = session("ws://b")
    uris.resolve(parse("pq://7/scope/t"), where=other)
    assert opened.target == RemoteTarget(other.replicas, "t", None, 7)


def test_options_of_a_uri_are_those_of_the_table(opened: Opened) -> None:
    session("ws://a")
    uris.resolve(
        "pq://q/scope/t?columns=a,b&onDisconnect=retain&retryWindowMillis=5&maxRetries=3"
        "&blink=require&waitTimeout=PT2S"
    )
    assert opened.options == MirrorOptions(
        ("a", "b"), "retain", 5, 3, blink=True, blink_required=True, wait_timeout_ms=2000
    )
    uris.resolve("pq://q/scope/t?snapshot&columns=a")
    assert opened.kind == "snapshot"
    assert opened.options is not None and opened.options.columns == ("a",)


def test_a_host_is_asked_as_whoever_is_logged_in_there(opened: Opened) -> None:
    session("ws://home")
    plain = session("ws://far:1000")
    secure = session("wss://far:443")
    uris.resolve("dh+plain://far:1000/scope/t")
    assert opened.target is not None and opened.target.replicas == plain.replicas
    uris.resolve("dh://far/scope/t")
    assert opened.target.replicas == secure.replicas
    with pytest.raises(RemoteError) as caught:
        uris.resolve("dh://stranger/scope/t")
    assert caught.value.code == "E_NO_SESSION"


def test_an_inner_name_is_looked_up_at_the_host_itself(opened: Opened) -> None:
    far = session("wss://far:443", default=False)
    uris.resolve("dh://far?uri=pq%3A%2F%2Fplant%2Fscope%2Ft")
    assert opened.target == RemoteTarget(far.replicas, "t", "plant")


def test_an_error_says_which_uri_it_was(opened: Opened) -> None:
    session("ws://a")
    opened.error = RemoteError("no", detail="why")
    with pytest.raises(RemoteError) as caught:
        uris.resolve("pq://q/scope/t")
    assert caught.value.detail == "why resolving pq://q/scope/t"
    with pytest.raises(UriError):
        uris.resolve("nonsense")

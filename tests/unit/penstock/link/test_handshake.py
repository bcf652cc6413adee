"""Opening the WebSocket of a link: where to, as whom, and what a refusal means."""

from __future__ import annotations

import base64
import dataclasses
import socket
import ssl
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
from websockets.http11 import Response

from penstock.errors import AuthError, CatalogError, PenstockError, RemoteError
from penstock.link import handshake
from penstock.link.address import Address, LinkLost
from penstock.link.frames import ORIGIN_HEADER, PATH, VERSION, VERSION_HEADER
from penstock.link.handshake import open_socket

ADDRESS = Address("far.example", 7707, "ann", "sécret")


class Reach:
    """Where links may go: these addresses, whatever the name means."""

    def __init__(self, *places: str, identity: str = "") -> None:
        self.places = places
        self.own = SimpleNamespace(identity=identity)

    def addresses(self, host: str, port: int) -> tuple[str, ...]:
        return self.places


class Dialled:
    """What `connect` was called with; it answers with an error if there is one."""

    def __init__(self) -> None:
        self.url = ""
        self.options: dict[str, Any] = {}
        self.error: BaseException | None = None

    def __call__(self, url: str, **options: Any) -> object:
        self.url = url
        self.options = options
        if self.error is not None:
            raise self.error
        return self


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> Dialled:
    made = Dialled()
    monkeypatch.setattr(handshake, "connect", made)
    return made


def refused(dialled: Dialled, error: BaseException, address: Address = ADDRESS) -> PenstockError:
    dialled.error = error
    with pytest.raises(PenstockError) as caught:
        open_socket(address, 5.0, 10.0)
    return caught.value


def status(code: int) -> InvalidStatus:
    return InvalidStatus(Response(code, "no", Headers()))


def test_a_link_says_who_comes_and_which_version_it_speaks(dialled: Dialled) -> None:
    assert open_socket(ADDRESS, 5.0, 10.0) is dialled  # type: ignore[comparison-overlap]
    assert dialled.url == f"ws://far.example:7707{PATH}"
    headers = dialled.options["additional_headers"]
    kind, _, given = headers["Authorization"].partition(" ")
    assert (kind, base64.b64decode(given).decode()) == ("Basic", "ann:sécret")
    assert headers[VERSION_HEADER] == str(VERSION)
    assert ORIGIN_HEADER not in headers
    assert dialled.options["sock"] is None and dialled.options["ssl"] is None
    assert (dialled.options["open_timeout"], dialled.options["ping_timeout"]) == (5.0, 20.0)


def test_an_address_of_version_six_is_put_in_brackets(dialled: Dialled) -> None:
    open_socket(dataclasses.replace(ADDRESS, host="::1"), 5.0, 10.0)
    assert dialled.url == f"ws://[::1]:7707{PATH}"


def test_a_secure_link_checks_the_certificate(dialled: Dialled) -> None:
    open_socket(dataclasses.replace(ADDRESS, secure=True), 5.0, 10.0)
    assert dialled.url.startswith("wss://")
    context = dialled.options["ssl"]
    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname


def test_an_authority_that_cannot_be_read_is_an_error(dialled: Dialled) -> None:
    address = dataclasses.replace(ADDRESS, secure=True, ca_file="/nosuch.pem")
    with pytest.raises(RemoteError) as caught:
        open_socket(address, 5.0, 10.0)
    assert caught.value.code == "E_TLS"
    assert dialled.url == ""


@pytest.mark.parametrize(
    ("code", "kind", "error_code"),
    [
        (401, AuthError, None),
        (403, AuthError, None),
        (426, RemoteError, "E_LINK_VERSION"),
        (421, LinkLost, "E_LINK_LOST"),
        (503, LinkLost, "E_LINK_LOST"),
    ],
)
def test_an_answer_that_is_no_upgrade_has_a_meaning(
    dialled: Dialled, code: int, kind: type[PenstockError], error_code: str | None
) -> None:
    error = refused(dialled, status(code))
    assert type(error) is kind
    assert error_code is None or error.code == error_code
    assert "far.example:7707" in error.message
    assert "sécret" not in str(error)


def test_a_mesh_does_not_link_to_itself(dialled: Dialled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", lambda *_: FakeSocket())
    address = dataclasses.replace(ADDRESS, allowed=Reach("10.0.0.1", identity="me"))  # type: ignore[arg-type]
    error = refused(dialled, status(421), address)
    assert isinstance(error, CatalogError) and error.code == "E_EXTERNAL_HOST"
    assert dialled.options["additional_headers"][ORIGIN_HEADER] == "me"


def verification_error() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "bad")
    error.verify_message = "certificate has expired"
    return error


@pytest.mark.parametrize(
    ("error", "kind", "code", "says"),
    [
        (verification_error(), RemoteError, "E_TLS", "is not trusted"),
        (ssl.SSLError(1, "wrong version"), LinkLost, "E_LINK_LOST", "does not answer as a"),
        (InvalidHandshake("odd"), LinkLost, "E_LINK_LOST", "does not answer as a"),
        (ConnectionRefusedError(111, "refused"), LinkLost, "E_LINK_LOST", "cannot be reached"),
        (TimeoutError("late"), LinkLost, "E_LINK_LOST", "cannot be reached"),
        (EOFError("end"), LinkLost, "E_LINK_LOST", "cannot be reached"),
        (WebSocketException("odd"), LinkLost, "E_LINK_LOST", "cannot be reached"),
    ],
)
def test_a_socket_that_does_not_open_is_one_kind_of_error(
    dialled: Dialled, error: BaseException, kind: type[PenstockError], code: str, says: str
) -> None:
    found = refused(dialled, error)
    assert (type(found), found.code) == (kind, code)
    assert says in found.message


@pytest.mark.parametrize(
    ("secure", "port"), [(True, "for secure links"), (False, "of the federation service")]
)
def test_a_wrong_port_gets_a_hint(dialled: Dialled, secure: bool, port: str) -> None:
    address = dataclasses.replace(ADDRESS, secure=secure)
    assert port in refused(dialled, InvalidHandshake("odd"), address).hint


class FakeSocket:
    def __init__(self) -> None:
        self.timeout: float | None = 1.0

    def settimeout(self, seconds: float | None) -> None:
        self.timeout = seconds


def test_only_an_address_that_was_checked_is_dialled(
    dialled: Dialled, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = FakeSocket()
    tried: list[tuple[str, int]] = []

    def create(place: tuple[str, int], timeout: float) -> FakeSocket:
        tried.append(place)
        if place[0] == "10.0.0.1":
            raise ConnectionRefusedError("down")
        return made

    monkeypatch.setattr(socket, "create_connection", create)
    reach = Reach("10.0.0.1", "10.0.0.2", "10.0.0.3")
    open_socket(dataclasses.replace(ADDRESS, allowed=reach), 5.0, 10.0)  # type: ignore[arg-type]
    assert tried == [("10.0.0.1", 7707), ("10.0.0.2", 7707)]
    assert dialled.options["sock"] is made and made.timeout is None


@pytest.mark.parametrize("places", [(), ("10.0.0.1",)])
def test_no_address_that_answers_is_a_lost_link(
    dialled: Dialled, monkeypatch: pytest.MonkeyPatch, places: tuple[str, ...]
) -> None:
    def create(*_: Any) -> FakeSocket:
        raise ConnectionRefusedError("down")

    monkeypatch.setattr(socket, "create_connection", create)
    with pytest.raises(LinkLost, match="cannot be reached"):
        open_socket(dataclasses.replace(ADDRESS, allowed=Reach(*places)), 5.0, 10.0)  # type: ignore[arg-type]
    assert dialled.url == ""

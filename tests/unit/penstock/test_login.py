from __future__ import annotations

import base64
import dataclasses

import pytest

from penstock.catalog.model import User
from penstock.catalog.view import Catalog
from penstock.clock import ManualClock
from penstock.errors import AuthError, BusError, OverloadError
from penstock.login import Login, query_credentials
from penstock.passwords import hashed_setting

ANN = User(200, "Ann", hashed_setting("anns password"))


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_772_355_600 * 10**9)


@pytest.fixture
def catalog() -> Catalog:
    return Catalog([ANN])


@pytest.fixture
def login(catalog: Catalog, clock: ManualClock) -> Login:
    return Login(lambda: catalog, "root", "secret", clock)


@pytest.mark.parametrize("credentials", ["root:secret", "ann:anns password"])
@pytest.mark.parametrize("scheme", ["Basic", "Token", "Bearer"])
def test_known_credentials(login: Login, scheme: str, credentials: str) -> None:
    header = basic(credentials) if scheme == "Basic" else f"{scheme} {credentials}"
    assert login.known(header) is None
    user = login.check(header)
    assert user in ("root", "Ann")
    assert login.known(header) == login.check(header) == user


@pytest.mark.parametrize(
    "header",
    [None, "", basic("root:wrong"), basic("nobody:secret"), basic("root"), "Basic !!!", "Taosd nothing", "Digest x", basic("root:"),
     basic("ann:secret"), basic(f"ann:{ANN.password}"), "Bearer a.b.c", basic("ROOT:secret")],
)  # fmt: skip
def test_everything_else_is_refused(login: Login, header: str | None) -> None:
    with pytest.raises(AuthError) as refused:
        login.check(header)
    assert refused.value.code == "E_AUTH"


def test_credentials_in_the_url(login: Login) -> None:
    assert login.check(query_credentials({"u": "root", "p": "secret"})) == "root"
    assert query_credentials({"u": "root"}) is None


def test_root_comes_in_while_there_is_no_catalog(clock: ManualClock) -> None:
    def absent() -> Catalog:
        raise BusError("not yet", code="E_KAFKA_DOWN")

    login = Login(absent, "root", "secret", clock)
    assert login.check(basic("root:secret")) == "root"
    with pytest.raises(BusError):
        login.check(basic("ann:anns password"))


@pytest.mark.parametrize("change", [{"password": hashed_setting("new password")}, {"enabled": False}, {"generation": 1}])
def test_a_change_of_the_user_ends_what_was_remembered(login: Login, catalog: Catalog, change: dict[str, object]) -> None:
    password, token = basic("ann:anns password"), "Bearer " + login.token("Ann")
    assert login.check(password) == login.check(token) == "Ann"
    catalog.put(dataclasses.replace(ANN, **change))  # type: ignore[arg-type]
    assert login.known(password) is None and login.known(token) is None
    with pytest.raises(AuthError):
        login.check(token)
    if "generation" in change:
        assert login.check(password) == "Ann"
    else:
        with pytest.raises(AuthError):
            login.check(password)


def test_a_grant_changes_nothing_about_who_one_is(login: Login, catalog: Catalog) -> None:
    header = basic("ann:anns password")
    login.check(header)
    catalog.put(dataclasses.replace(ANN, roles=(7,)))
    assert login.known(header) == "Ann"


def test_a_token_is_as_good_as_the_password_until_it_expires(login: Login, clock: ManualClock) -> None:
    token = login.token("root", seconds=60)
    for scheme in ("Bearer", "Token", "Taosd"):
        assert login.check(f"{scheme} {token}") == "root"
    clock.advance(60)
    assert login.known(f"Bearer {token}") is None
    with pytest.raises(AuthError, match="expired"):
        login.check(f"Bearer {token}")


def test_a_user_who_was_dropped_and_made_again_is_another(login: Login, catalog: Catalog) -> None:
    token = login.token("Ann")
    catalog.remove(ANN.id)
    catalog.put(dataclasses.replace(ANN, id=201))
    with pytest.raises(AuthError, match="gone"):
        login.check(f"Bearer {token}")


def test_guessing_is_slowed_down_for_that_name_and_address_only(login: Login, clock: ManualClock) -> None:
    for _ in range(20):
        with pytest.raises(AuthError):
            login.check(basic("ann:guess"), where="10.0.0.1")
    with pytest.raises(OverloadError):
        login.check(basic("ann:anns password"), where="10.0.0.1")
    assert login.check(basic("root:secret"), where="10.0.0.1") == "root"
    assert login.login("ann", "anns password", where="10.0.0.2") == "Ann"
    clock.advance(60)
    assert login.login("ann", "anns password", where="10.0.0.1") == "Ann"

from __future__ import annotations

import asyncio
import base64
import dataclasses

import pytest
from argon2 import PasswordHasher

from penstock.auth import passwords
from penstock.auth.login import Login, query_credentials
from penstock.auth.wrong_logins import PER_ADDRESS, PER_NAME
from penstock.catalog.model import User
from penstock.catalog.view import Catalog
from penstock.errors import AuthError, BusError, OverloadError, PenstockError
from penstock.runtime.clock import ManualClock

KEY = "k" * 48
#: a guess costs next to nothing with it: most of these tests count guesses
CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
ANN = User(200, "Ann", CHEAP.hash("anns password"))


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_772_355_600 * 10**9)


@pytest.fixture
def catalog() -> Catalog:
    return Catalog([ANN])


@pytest.fixture
def login(catalog: Catalog, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Login:
    monkeypatch.setattr(passwords, "_HASHER", CHEAP)
    return Login(lambda: catalog, "root", "secret", clock, KEY)


@pytest.fixture
def costly_login(catalog: Catalog, clock: ManualClock) -> Login:
    """With hashes that cost what they do in a mesh."""
    return Login(lambda: catalog, "root", "secret", clock, KEY)


@pytest.mark.parametrize("credentials", ["root:secret", "ann:anns password"])
@pytest.mark.parametrize("scheme", ["Basic", "Token", "Bearer"])
def test_known_credentials(login: Login, scheme: str, credentials: str) -> None:
    header = basic(credentials) if scheme == "Basic" else f"{scheme} {credentials}"
    assert login.recall(header) is None
    user = login.check(header)
    assert user in ("root", "Ann")
    assert login.recall(header) == login.check(header) == user


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        basic("root:wrong"),
        basic("nobody:secret"),
        basic("root"),
        "Basic !!!",
        "Taosd nothing",
        "Digest x",
        basic("root:"),
        basic("ann:secret"),
        basic(f"ann:{ANN.password}"),
        "Bearer a.b.c",
        basic("ROOT:secret"),
    ],
)
def test_everything_else_is_refused(login: Login, header: str | None) -> None:
    with pytest.raises(AuthError) as refused:
        login.check(header)
    assert refused.value.code == "E_AUTH"


def test_credentials_in_the_url(login: Login) -> None:
    assert login.check(query_credentials({"u": "root", "p": "secret"})) == "root"
    assert query_credentials({"u": "root"}) is None
    token = login.token("Ann")
    assert login.check(query_credentials({"token": token, "u": "root", "p": "x"})) == "Ann"
    with pytest.raises(AuthError):
        login.check(query_credentials({"token": ""}))


def test_root_comes_in_while_there_is_no_catalog(clock: ManualClock) -> None:
    def absent() -> Catalog:
        raise BusError("not yet", code="E_KAFKA_DOWN")

    login = Login(absent, "root", "secret", clock, KEY)
    assert login.check(basic("root:secret")) == "root"
    with pytest.raises(BusError):
        login.check(basic("ann:anns password"))


@pytest.mark.parametrize(
    "change", [{"password": CHEAP.hash("new password")}, {"enabled": False}, {"generation": 1}]
)
def test_a_change_of_the_user_ends_what_was_remembered(
    login: Login, catalog: Catalog, change: dict[str, object]
) -> None:
    password = basic("ann:anns password")
    token = "Bearer " + login.token("Ann")
    assert login.check(password) == login.check(token) == "Ann"
    catalog.put(dataclasses.replace(ANN, **change))  # type: ignore[arg-type]
    assert login.recall(password) is None and login.recall(token) is None
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
    assert login.recall(header) == "Ann"


def test_a_token_is_as_good_as_the_password_until_it_expires(
    login: Login, clock: ManualClock
) -> None:
    token = login.token("root", seconds=60)
    for scheme in ("Bearer", "Token", "Taosd"):
        assert login.check(f"{scheme} {token}") == "root"
    clock.advance(60)
    assert login.recall(f"Bearer {token}") is None
    with pytest.raises(AuthError, match="expired"):
        login.check(f"Bearer {token}")


def test_a_user_who_was_dropped_and_made_again_is_another(login: Login, catalog: Catalog) -> None:
    token = login.token("Ann")
    catalog.remove(ANN.id)
    catalog.put(dataclasses.replace(ANN, id=201))
    with pytest.raises(AuthError, match="gone"):
        login.check(f"Bearer {token}")


def test_guessing_a_name_is_slowed_down_for_that_address_only(
    login: Login, clock: ManualClock
) -> None:
    for _ in range(20):
        with pytest.raises(AuthError):
            login.check(basic("ann:guess"), where="10.0.0.1")
    for name in ("ann", "ANN", "aNn"):
        with pytest.raises(OverloadError):
            login.check(basic(f"{name}:anns password"), where="10.0.0.1")
    with pytest.raises(OverloadError):
        login.check(basic("ann:anns password"), where="10.0.0.1")
    assert login.check(basic("root:secret"), where="10.0.0.1") == "root"
    assert login.login("ann", "anns password", where="10.0.0.2") == "Ann"
    clock.advance(60)
    assert login.login("ann", "anns password", where="10.0.0.1") == "Ann"


def test_names_are_guessed_as_if_their_letters_had_no_case(login: Login) -> None:
    for i in range(PER_NAME):
        with pytest.raises(AuthError):
            login.check(basic(f"{'aA'[i % 2]}nN:guess {i}"), where="10.0.0.1")
    with pytest.raises(OverloadError):
        login.check(basic("ann:one more"), where="10.0.0.1")


@pytest.mark.parametrize("address", ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::{:x}"])
def test_guessing_with_many_names_is_counted_for_the_address(login: Login, address: str) -> None:
    for i in range(PER_ADDRESS):
        with pytest.raises(AuthError):
            login.check(basic(f"user{i}:guess"), where=address.format(i + 1))
    with pytest.raises(OverloadError):
        login.check(basic("another:guess"), where=address.format(1))
    with pytest.raises(AuthError):
        login.check(basic("another:guess"), where="10.9.9.9")


def test_guesses_of_others_lock_out_nobody_who_is_known(login: Login) -> None:
    """The mesh's own services, tokens and accepted passwords: from the same address, at every way
    in.
    """
    login.check(basic("ann:anns password"), where="10.0.0.1")
    tokens = [login.token(name) for name in ("root", "Ann")]
    for i in range(PER_ADDRESS):
        with pytest.raises(AuthError):
            login.check(basic(f"{('root', 'ann', f'user{i}')[i % 3]}:guess {i}"), where="10.0.0.1")
    for _ in range(PER_NAME):
        with pytest.raises(AuthError):
            login.check("Bearer a.b.c", where="10.0.0.1")
    with pytest.raises(OverloadError):
        login.check("Bearer a.b.c", where="10.0.0.1")
    assert login.check(basic("root:secret"), where="10.0.0.1") == "root"
    assert login.check("Token root:secret", where="10.0.0.1") == "root"
    assert login.login("ann", "anns password", where="10.0.0.1") == "Ann"
    assert login.check("Bearer ann:anns password", where="10.0.0.1") == "Ann"
    assert [login.check(f"Bearer {token}", where="10.0.0.1") for token in tokens] == ["root", "Ann"]


async def _statuses(login: Login, guesses: list[tuple[str, str]]) -> list[str]:
    """What many connections are told that log in at once: (header, address) each."""

    async def one(header: str, where: str) -> str:
        try:
            return await login.admit(header, where=where)
        except PenstockError as refused:
            return refused.code

    return list(await asyncio.gather(*(one(*guess) for guess in guesses)))


def test_a_full_queue_of_hashes_refuses_at_once_and_holds_up_nobody_who_is_known(
    costly_login: Login,
) -> None:
    login = costly_login
    known = basic("ann:anns password")
    login.check(known, where="10.1.0.1")

    async def attacked() -> list[str]:
        guesses = [(basic(f"user{i}:guess"), f"10.0.{i}.1") for i in range(200)]
        attack = asyncio.create_task(_statuses(login, guesses))
        await asyncio.sleep(0)
        assert await login.admit(known, where="10.1.0.1") == "Ann"
        assert await login.admit(basic("root:secret"), where="10.0.1.1") == "root"
        # both were told while the guesses still stood in the queue
        assert not attack.done()
        return await attack

    told = asyncio.run(attacked())
    assert told.count("E_OVERLOAD") >= 150 and set(told) == {"E_AUTH", "E_OVERLOAD"}


def test_one_address_takes_a_part_of_the_queue_and_equal_logins_one_place(
    costly_login: Login,
) -> None:
    login = costly_login
    spread = [(basic(f"user{i}:guess"), "10.0.0.1") for i in range(50)] + [
        (basic("ann:anns password"), "10.0.0.2")
    ]
    told = asyncio.run(_statuses(login, spread))
    assert told[-1] == "Ann" and told.count("E_OVERLOAD") == 42
    told = asyncio.run(_statuses(login, [(basic("ann:anns password"), "10.0.0.3")] * 50))
    assert told == ["Ann"] * 50


def test_a_token_makes_no_token_that_outlives_it(login: Login, clock: ManualClock) -> None:
    short = f"Bearer {login.token('Ann', seconds=60)}"
    clock.advance(20)
    ends = login.expiry(short)
    with pytest.raises(AuthError, match="outlives") as refused:
        login.token("Ann", seconds=41, until=ends)
    assert refused.value.code == "E_FORBIDDEN"
    for seconds in (None, 40, 1):
        made = login.tokens.read(login.token("Ann", seconds=seconds, until=ends))
        assert ends is not None and made.expires <= ends
    assert (
        login.expiry(basic("ann:anns password")) is login.expiry("Bearer ann:anns password") is None
    )


def test_tokens_are_not_made_of_roots_password(
    login: Login, catalog: Catalog, clock: ManualClock
) -> None:
    token = f"Bearer {login.token('Ann')}"
    assert Login(lambda: catalog, "root", "another", clock, KEY).check(token) == "Ann"
    with pytest.raises(AuthError):
        Login(lambda: catalog, "root", "secret", clock, "o" * 48).check(token)
    with pytest.raises(AuthError, match="another password"):
        Login(lambda: catalog, "root", "another", clock, KEY).check(f"Bearer {login.token('root')}")

from __future__ import annotations

import pytest

from penstock.auth.passwords import hash_password, hash_setting, matches
from penstock.errors import CatalogError


def test_a_hash_knows_its_password_and_no_other() -> None:
    made = hash_password("correct horse")
    assert made.startswith("$argon2id$") and "correct" not in made
    assert matches("correct horse", made) and not matches("Correct horse", made)
    assert hash_password("correct horse") != made


def test_what_is_no_hash_matches_nothing() -> None:
    assert not matches("", "") and not matches("x", "$argon2id$nonsense") and not matches("x", "x")


@pytest.mark.parametrize("password", ["", "seven77", "x" * 256])
def test_users_need_a_password_worth_a_hash(password: str) -> None:
    with pytest.raises(CatalogError) as refused:
        hash_password(password)
    assert refused.value.code == "E_PASSWORD"
    assert not password or password not in str(refused.value)


def test_the_meshs_own_may_be_short() -> None:
    assert matches("x", hash_setting("x"))

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.errors import BusError
from services.tables.scram import Scram

#: the conversation in RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = (
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
)


def test_the_conversation_of_the_rfc() -> None:
    login = Scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    assert login.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    proof = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert login.final(CHALLENGE) == proof
    login.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_broker_that_does_not_know_the_password_is_not_believed() -> None:
    login = Scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    login.final(CHALLENGE)
    for word in (b"", b"v=", b"e=other-error", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5="):
        with pytest.raises(BusError):
            login.check(word)


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"r=,s=,i=",
        b"\xff",
        CHALLENGE.replace(b"4096", b"0"),
        CHALLENGE.replace(b"4096", b"99999999"),
        CHALLENGE.replace(b"W22Z", b"W2!Z"),
        b"r=somebody" + CHALLENGE[2:],
        b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    ],
)
def test_a_challenge_that_is_none_is_refused(challenge: bytes) -> None:
    with pytest.raises(BusError):
        Scram("SCRAM-SHA-256", "user", "pencil", NONCE).final(challenge)


@given(
    some.text(max_size=20), some.text(min_size=1, max_size=20), some.binary(min_size=1, max_size=16)
)
def test_a_server_that_keeps_no_password_accepts_it(user: str, password: str, salt: bytes) -> None:
    """The server's side by the RFC: it stores H(client key) and compares."""
    login = Scram("SCRAM-SHA-512", user, password, "abc")
    digest = "sha512"
    first = login.first().decode()
    challenge = f"r=abcdef,s={base64.b64encode(salt).decode()},i=2"
    final = login.final(challenge.encode()).decode()
    without_proof, _, proof = final.rpartition(",p=")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, 2)
    stored = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
    said = f"{first.removeprefix('n,,')},{challenge},{without_proof}".encode()
    signature = hmac.digest(stored, said, digest)
    key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.new(digest, key).digest() == stored
    login.check(
        b"v="
        + base64.b64encode(hmac.digest(hmac.digest(salted, b"Server Key", digest), said, digest))
    )

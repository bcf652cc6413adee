"""A login by SCRAM (RFC 5802, 7677) from the client's side: what to say, and whether the server
knows the password, too. Pure.

Names and passwords go as they are: Kafka's users have none that SASLprep would change, but for
letters beyond ASCII in a password, which librdkafka sends as they are as well. Refused: channel
binding.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from penstock.errors import BusError

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = tuple(_HASHES)
#: rounds that a server may ask for: more would be an attack on our time
_MOST_ROUNDS = 1_000_000
#: base64 of "n,,": no channel binding
_NO_BINDING = "biws"


class Scram:
    """One login: `first`, then `final` with the server's answer, then `check` with its last
    word.
    """

    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        """
        Args:
            mechanism: one of `MECHANISMS`.
            nonce: printable and without commas; never used twice.
        """
        self._hash = _HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._proof_of_server = b""

    def first(self) -> bytes:
        """Return what begins the login."""
        return f"n,,{self._bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        """Return the proof that answers the server's *challenge*. Raises BusError when that is
        none.
        """
        try:
            text = challenge.decode()
            nonce, salt, rounds = (
                _value(part, name) for part, name in zip(text.split(",", 2), "rsi", strict=True)
            )
            salted = self._salt_password(base64.b64decode(salt, validate=True), int(rounds))
        except (ValueError, binascii.Error) as wrong:
            raise BusError("the broker's challenge cannot be read") from wrong
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise BusError("the broker answers somebody else's login")
        last = f"c={_NO_BINDING},r={nonce}"
        said = f"{self._bare},{text},{last}".encode()
        key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._hash, key).digest(), said)
        self._proof_of_server = self._mac(self._mac(salted, b"Server Key"), said)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{last},p={base64.b64encode(proof).decode()}".encode()

    def check(self, word: bytes) -> None:
        """Raise BusError unless the server's last *word* shows that it knows the password."""
        if not hmac.compare_digest(word, b"v=" + base64.b64encode(self._proof_of_server)):
            raise BusError("the broker does not know the password itself")

    def _salt_password(self, salt: bytes, rounds: int) -> bytes:
        if not 1 <= rounds <= _MOST_ROUNDS:
            raise ValueError(rounds)
        return hashlib.pbkdf2_hmac(self._hash, self._password, salt, rounds)

    def _mac(self, key: bytes, text: bytes) -> bytes:
        return hmac.digest(key, text, self._hash)


def _value(part: str, name: str) -> str:
    if not part.startswith(f"{name}="):
        raise ValueError(part)
    return part[2:]

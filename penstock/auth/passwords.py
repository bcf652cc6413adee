"""Passwords as argon2id hashes: made, and compared in constant time. The only file that calls
argon2.

The cost is OWASP's smaller choice (19 MiB, two passes, one lane): some 20 ms a check, and a burst
of logins does not take the memory of a small machine. Refused: passwords that are too short to be
worth a hash.
"""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from penstock.errors import CatalogError

SHORTEST = 8
LONGEST = 255
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)


def hash_password(password: str) -> str:
    """Hash a new password, salt and cost in it. Raises CatalogError (E_PASSWORD)."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise CatalogError(f"a password has {SHORTEST} to {LONGEST} characters", code="E_PASSWORD")
    return _HASHER.hash(password)


def hash_setting(password: str) -> str:
    """Hash a password from the settings, which may be as short as its owner likes."""
    return _HASHER.hash(password)


def matches(password: str, hash_: str) -> bool:
    """Tell whether *password* is the one that *hash_* was made of."""
    try:
        return _HASHER.verify(hash_, password)
    except (Argon2Error, InvalidHashError):
        return False

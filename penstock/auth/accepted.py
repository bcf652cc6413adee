"""`Authorization` headers that were accepted, so that a password is hashed once."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict
from dataclasses import dataclass

#: headers kept; the one that was accepted first is forgotten first
_HEADERS = 4096


@dataclass(frozen=True)
class AcceptedLogin:
    """Who a header stood for, and the mark of the password that was valid then."""

    user: str
    mark: str
    #: seconds since 1970
    expires: int


class AcceptedHeaders:
    """Keep the newest headers as keyed digests. Any thread."""

    def __init__(self, most: int = _HEADERS) -> None:
        self._most = most
        self._secret = secrets.token_bytes(32)
        self._logins: OrderedDict[bytes, AcceptedLogin] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, header: str) -> AcceptedLogin | None:
        """Return what is known of *header*. Never blocks."""
        return self._logins.get(self.digest(header))

    def keep(self, header: str, login: AcceptedLogin) -> None:
        digest = self.digest(header)
        with self._lock:
            self._logins[digest] = login
            while len(self._logins) > self._most:
                self._logins.popitem(last=False)

    def digest(self, header: str) -> bytes:
        """Return a key for *header* that only this process can make."""
        # keyed blake2 rather than OpenSSL's HMAC, which lets go of the interpreter's lock and has
        # to queue for it again on every request
        return hashlib.blake2b(header.encode(), key=self._secret).digest()

"""The scripts of a lease over a dict, for tests whose subject is not Redis."""

from __future__ import annotations

from typing import Any


class MemoryRedis:
    """Holds of leases and their counters; nothing runs out unless `expire` is called."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.down: Exception | None = None

    def get(self, key: str) -> str | None:
        if self.down is not None:
            raise self.down
        return self.values.get(key)

    def expire(self, key: str) -> None:
        """Let the hold of *key* run out."""
        self.values.pop(key, None)

    def eval(self, script: str, count: int, *rest: Any) -> int:
        """Acquire (two keys), renew (a token and a time), release (a token) or revoke (an
        epoch).
        """
        if self.down is not None:
            raise self.down
        key, arguments = rest[0], rest[count:]
        if count == 2:
            return self._acquire(key, rest[1], *arguments)
        token, epoch, _ = self.values.get(key, "||").split("|", 2)
        if str(arguments[0]) not in (token, epoch) or not token:
            return 0
        if len(arguments) == 1:
            del self.values[key]
        return 1

    def _acquire(self, key: str, counter: str, token: str, ttl: int, seen: int, at: str) -> int:
        if key in self.values:
            return 0
        epoch = max(int(self.values.get(counter, "0")), seen) + 1
        self.values[counter] = str(epoch)
        self.values[key] = f"{token}|{epoch}|{at}"
        return epoch

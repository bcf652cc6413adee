"""Leadership: one holder at a time by a key in Redis, and an epoch that only grows.

A lease alone stops nobody who sleeps through its end; what a leader writes must carry its epoch,
and readers drop lower ones. The epoch is one more than the highest of Redis's counter and `seen`,
the last epoch the caller found in what was written, so a Redis that restarts empty cannot hand out
an old one. Refused: renewing or releasing a lease that somebody else holds by now.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass

import redis

from penstock import names
from penstock.errors import LeaseLost, RemoteError
from penstock.runtime import vital
from penstock.runtime.clock import Clock, SystemClock

_ACQUIRE = """
if redis.call('exists', KEYS[1]) == 1 then return 0 end
local epoch = math.max(tonumber(redis.call('get', KEYS[2]) or '0'), tonumber(ARGV[3])) + 1
redis.call('set', KEYS[2], epoch)
redis.call('set', KEYS[1], ARGV[1] .. '|' .. epoch .. '|' .. ARGV[4], 'PX', ARGV[2])
return epoch
"""
_RENEW = """
local held = redis.call('get', KEYS[1])
if held and string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. '|' then
    return redis.call('pexpire', KEYS[1], ARGV[2])
end
return 0
"""
_RELEASE = """
local held = redis.call('get', KEYS[1])
if held and string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. '|' then
    return redis.call('del', KEYS[1])
end
return 0
"""
_REVOKE = """
local held = redis.call('get', KEYS[1])
if held and string.match(held, '^[^|]*|(%d+)|') == ARGV[1] then
    return redis.call('del', KEYS[1])
end
return 0
"""


@dataclass(frozen=True)
class Holder:
    """The holder of a lease, as others see it; `address` is where the holder can be reached."""

    epoch: int
    address: str


class Lease:
    """One process's hold on a named lease. `renew` must be called well within `ttl`; `keep` does it
    on a thread.
    """

    def __init__(
        self,
        client: redis.Redis,
        name: str,
        *,
        ttl: float = 5.0,
        address: str = "",
        clock: Clock | None = None,
    ) -> None:
        """
        Arguments that need a word:
            ttl: seconds without renewal after which others may take over.
            address: told to whoever asks `holder`.
        """
        self.name = name
        self.ttl = ttl
        self.epoch = 0
        self._redis = client
        self._address = address
        self._clock = clock or SystemClock()
        self._key = names.lease(name)
        self._counter = names.lease(name) + ":epoch"
        self._token = secrets.token_hex(8)
        self._until = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def token(self) -> str:
        """What tells this hold from everybody else's in Redis; it stays the same for the life of
        this object.
        """
        return self._token

    @property
    def held(self) -> bool:
        """True while this process may still act as the holder by its own clock."""
        return self.epoch > 0 and self._clock.monotonic() < self._until

    def acquire(self, seen: int = 0) -> bool:
        """Try to become the holder; `epoch` is then greater than *seen* and every earlier one."""
        asked = self._clock.monotonic()
        epoch = int(
            self._call(
                _ACQUIRE,
                [self._key, self._counter],
                [self._token, int(self.ttl * 1000), seen, self._address],
            )
        )
        if epoch:
            self.epoch = epoch
            self._until = asked + self.ttl
        return bool(epoch)

    def renew(self) -> None:
        """Hold on for another `ttl`.

        Raises:
            LeaseLost: it ran out, or somebody else has it.
            RemoteError: Redis does not answer; the lease is still held until its time is over.
        """
        asked = self._clock.monotonic()
        if not self.epoch or not int(
            self._call(_RENEW, [self._key], [self._token, int(self.ttl * 1000)])
        ):
            raise self._lose()
        self._until = asked + self.ttl

    def check(self) -> None:
        """Raises LeaseLost when this process can no longer be sure that it holds the lease."""
        if not self.held:
            raise self._lose()

    def release(self) -> None:
        """Give the lease up, if it is still held."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        if self.epoch:
            self._call(_RELEASE, [self._key], [self._token])
            self.epoch = 0

    def holder(self) -> Holder | None:
        """Return who holds the lease now."""
        try:
            found = self._redis.get(self._key)
        except redis.RedisError as error:
            raise _unreachable(error) from None
        if found is None:
            return None
        _, epoch, address = (found.decode() if isinstance(found, bytes) else str(found)).split(
            "|", 2
        )
        return Holder(int(epoch), address)

    def revoke(self, holder: Holder) -> bool:
        """Take the lease from a holder that is known to be dead; False when it is somebody else's
        by now.
        """
        return bool(self._call(_REVOKE, [self._key], [holder.epoch]))

    def keep(self, on_lost: Callable[[LeaseLost], None]) -> None:
        """Renew on a thread three times per `ttl` until released; *on_lost* is called once, from
        that thread.
        """

        @vital.run
        def renew() -> None:
            while not self._stop.wait(self.ttl / 3):
                try:
                    self.renew()
                except LeaseLost as lost:
                    on_lost(lost)
                    return
                except RemoteError:
                    if not self.held:
                        on_lost(self._lose())
                        return

        self._stop.clear()
        self._thread = threading.Thread(target=renew, name=f"lease-{self.name}", daemon=True)
        self._thread.start()

    def _lose(self) -> LeaseLost:
        lost = LeaseLost(self.name, self.epoch)
        self.epoch = 0
        self._until = 0.0
        return lost

    def _call(self, script: str, keys: list[str], arguments: list[str | int]) -> int:
        try:
            return int(self._redis.eval(script, len(keys), *keys, *arguments))
        except redis.RedisError as error:
            raise _unreachable(error) from None


def _unreachable(error: redis.RedisError) -> RemoteError:
    return RemoteError("Redis does not answer", code="E_REDIS", detail=str(error))

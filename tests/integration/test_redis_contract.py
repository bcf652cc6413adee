"""What the services take for granted of Redis, checked on a real server."""

from __future__ import annotations

import uuid

import pytest
import redis

from penstock.coordination.lease import Lease
from penstock.errors import LeaseLost, RemoteError


@pytest.fixture
def client(redis_url: str) -> redis.Redis:
    return redis.from_url(redis_url)


@pytest.fixture
def name() -> str:
    return f"contract-{uuid.uuid4().hex}"


def test_password_is_asked_for(redis_url: str) -> None:
    open_url = f"redis://{redis_url.rpartition('@')[2]}"
    with pytest.raises(redis.AuthenticationError):
        redis.from_url(open_url).ping()


def test_one_holder_and_epochs_grow(client: redis.Redis, name: str) -> None:
    first = Lease(client, name, address="a")
    second = Lease(client, name, address="b")
    assert first.acquire(seen=41) and not second.acquire()
    holder = second.holder()
    assert holder is not None and (holder.epoch, holder.address) == (42, "a")
    first.release()
    assert second.acquire() and second.epoch == 43
    with pytest.raises(LeaseLost):
        first.renew()
    second.release()


def test_a_lease_runs_out_and_its_old_holder_is_told(client: redis.Redis, name: str) -> None:
    first = Lease(client, name, ttl=0.2)
    second = Lease(client, name, ttl=5)
    assert first.acquire()
    while not second.acquire():
        pass
    with pytest.raises(LeaseLost):
        first.renew()
    first.release()  # must not take the lease from its new holder
    assert second.holder() is not None
    second.release()


def test_hash_fields_set_by_many_are_all_there(client: redis.Redis, name: str) -> None:
    with client.pipeline(transaction=False) as pipe:
        for partition in range(16):
            pipe.hset(name, f"scan:in.d:{partition}", str(partition))
        pipe.expire(name, 3600)
        pipe.execute()
    assert client.hlen(name) == 16 and 0 < client.ttl(name) <= 3600


def test_a_server_that_does_not_answer_is_an_error_of_ours(name: str) -> None:
    with pytest.raises(RemoteError):
        Lease(redis.Redis(port=1, socket_connect_timeout=1), name).acquire()


def test_a_stream_is_cut_and_read_from_its_end(client: redis.Redis, name: str) -> None:
    with client.pipeline(transaction=False) as pipe:
        for number in range(3_000):
            pipe.xadd(name, {"entry": str(number)}, maxlen=1_000)
        pipe.expire(name, 3600)
        pipe.execute()
    newest = client.xrevrange(name, count=2)
    assert [fields for _, fields in newest] == [{b"entry": b"2999"}, {b"entry": b"2998"}]
    assert 1_000 <= len(client.xrevrange(name, count=None)) < 1_200
    assert client.ttl(name) > 0

"""Who gets in at the PostgreSQL wire, over what, and what they may see: no key, a wrong one, few
rights, too many connections.
"""

from __future__ import annotations

import ssl
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.postgres.channel import PgChannel
from penstock.runtime import tls
from tests.certificates import issued
from tests.unit.gateway.postgres.kit import PASSWORD, PgWire, Wire, serving, text

ANN = PASSWORD * 2
SSL_REQUEST = struct.pack("!ii", 8, 80_877_103)


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    async with serving(tmp_path) as made:
        made.add_user("ann", "READ", on="d")
        yield made


@pytest.mark.parametrize(
    ("user", "password"), [("root", "wrong"), ("nobody", PASSWORD), ("", PASSWORD), ("root", "")]
)
async def test_wrong_logins_are_refused(wire: Wire, user: str, password: str) -> None:
    client = await PgWire.log_in(wire, user, password)
    assert client.begun.ended and client.begun.error["C"] == "28P01"
    assert client.begun.error["S"] == "FATAL" and client.begun.kinds == "E"


async def test_nothing_is_answered_before_the_login(wire: Wire) -> None:
    client = await PgWire.open(wire.port)
    client.begin(user="root")
    await client.reply(until=b"R")
    client.send(b"Q", text("SELECT 1"))
    reply = await client.reply()
    assert reply.ended and reply.kinds == "E" and reply.error["C"] == "08P01"


async def test_a_user_reads_what_they_may_and_sees_no_more(wire: Wire) -> None:
    client = await PgWire.log_in(wire, "ann", ANN, database="d")
    assert not (await client.query("SELECT n FROM plain")).error
    for sql in ("SELECT x FROM hidden.secrets", "SELECT x FROM hidden.nothing"):
        assert (await client.query(sql)).error["C"] == "42501"
    for sql in (
        "SELECT relname FROM pg_catalog.pg_class WHERE relname = 'secrets'",
        "SELECT datname FROM pg_database WHERE datname = 'hidden'",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'hidden'",
        "SELECT usename FROM pg_user WHERE usename NOT IN ('ann', 'root')",
    ):
        assert (await client.query(sql)).rows == []
    assert (await PgWire.log_in(wire, "ann", ANN, database="hidden")).begun.error["C"] == "3F000"


async def test_a_right_that_is_taken_back_ends_at_once(wire: Wire) -> None:
    client = await PgWire.log_in(wire, "ann", ANN, database="d")
    wire.add_user("ann")
    assert (await client.query("SELECT n FROM plain")).ended  # it is another ann


async def test_a_user_who_is_gone_is_put_out(wire: Wire) -> None:
    client = await PgWire.log_in(wire, "ann", ANN, database="d")
    user = wire.gateway.catalog.user("ann")
    assert user is not None
    wire.gateway.catalog.remove(user.id)
    reply = await client.query("SELECT n FROM plain")
    assert reply.ended and reply.error["C"] == "28P01"


async def test_a_token_is_a_password_of_its_own_user(wire: Wire) -> None:
    token = wire.login.token("ann")
    assert not (await PgWire.log_in(wire, "ann", token, database="d")).begun.error
    assert (await PgWire.log_in(wire, "root", token)).begun.error["C"] == "28P01"


async def test_a_password_in_the_clear_stays_within_the_machine(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PgChannel, "remote", property(lambda _: "192.0.2.7"))
    client = await PgWire.open(wire.port)
    client.begin(user="root")
    reply = await client.reply()
    assert reply.ended and reply.kinds == "E" and "sslmode" in reply.error["H"]


@pytest.mark.parametrize(
    ("address", "taken"),
    [
        ("172.18.0.5", True),
        ("::ffff:172.18.0.5", True),
        ("fd00::7", True),
        ("192.0.2.7", False),
        ("172.32.0.5", False),
        ("2001:db8::1", False),
    ],
)
async def test_named_networks_may_send_passwords_in_the_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, taken: bool
) -> None:
    monkeypatch.setattr(PgChannel, "remote", property(lambda _: address))
    async with serving(tmp_path, postgres_clear=("172.16.0.0/12", "fd00::/8")) as wire:
        client = await PgWire.open(wire.port)
        client.begin(user="root")
        assert (await client.reply(until=b"RE")).kinds == ("R" if taken else "E")


@pytest.mark.parametrize(
    ("published", "address", "taken"),
    [
        ("127.0.0.1", "172.18.0.5", True),
        ("[::1]", "fd00::7", True),
        ("127.0.0.1", "203.0.113.7", False),
        ("0.0.0.0", "172.18.0.5", False),
        ("192.168.1.2", "192.168.1.7", False),
        ("", "172.18.0.5", False),
    ],
)
async def test_a_proxy_at_loopback_passes_on_passwords_in_the_clear_and_no_other_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: str, address: str, taken: bool
) -> None:
    monkeypatch.setattr(PgChannel, "remote", property(lambda _: address))
    async with serving(tmp_path, postgres_published=published) as wire:
        client = await PgWire.open(wire.port)
        client.begin(user="root")
        reply = await client.reply(until=b"RE")
        assert reply.kinds == ("R" if taken else "E")
        assert taken or "PENSTOCK_GATEWAY_POSTGRES_CLEAR" in reply.error["H"]


async def test_too_many_connections_are_told_so(tmp_path: Path) -> None:
    async with serving(tmp_path, max_connections_per_address=1) as wire:
        first = await PgWire.log_in(wire)
        second = await PgWire.open(wire.port)
        assert (await second.reply()).error["C"] == "53300"
        await first.close()


async def test_who_says_nothing_has_little_time(tmp_path: Path) -> None:
    async with serving(tmp_path, header_seconds=0.05) as wire:
        client = await PgWire.open(wire.port)
        assert (await client.reply()).ended
        half = await PgWire.open(wire.port)
        half.writer.write(b"\0\0\0\x20\0\3")
        assert (await half.reply()).ended


async def test_without_tls_the_answer_is_no(wire: Wire) -> None:
    client = await PgWire.open(wire.port)
    client.writer.write(SSL_REQUEST)
    assert await client.reader.readexactly(1) == b"N"


async def test_with_tls_nothing_comes_in_the_clear(tmp_path: Path) -> None:
    certificate = issued(tmp_path / "pem")
    files = {"tls_cert": certificate.cert, "tls_key": certificate.key}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    async with serving(tmp_path, context, **files) as wire:
        plain = await PgWire.open(wire.port)
        plain.begin(user="root")
        assert "TLS" in (await plain.reply()).error["M"]

        early = await PgWire.open(wire.port)
        early.writer.write(SSL_REQUEST + b"\0\0\0\x08")
        assert (await early.reply()).ended

        client = await PgWire.open(wire.port)
        client.writer.write(SSL_REQUEST)
        assert await client.reader.readexactly(1) == b"S"
        await client.writer.start_tls(tls.client(certificate.ca), server_hostname="127.0.0.1")
        client.begin(user="root", database="d")
        await client.reply(until=b"R")
        client.send(b"p", text(PASSWORD))
        assert (await client.reply()).status == "I"
        assert (await client.query("SELECT 1")).rows == [["1"]]
        await client.close()

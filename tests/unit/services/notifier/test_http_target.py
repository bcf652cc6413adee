"""NOTIFY over HTTP against a web server: nothing lost, order kept, and what hostile targets
answer.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import ssl
from email.utils import formatdate
from pathlib import Path

import pytest
import trustme

from penstock.outbound.reach import Own
from penstock.runtime.clock import ManualClock
from tests.unit.services.notifier.web_kit import OK, delivering, web_server

SECRET = "hunter2"
BATCH = "application/cloudevents-batch+json; charset=utf-8"


def answer(status: str, *fields: str, body: str = "") -> bytes:
    return "\r\n".join(
        (f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}", "", body)
    ).encode()


async def test_one_event_is_structured_and_several_are_a_batch() -> None:
    async with web_server() as server, delivering(server.url + "?k=1") as to:
        to.offer(7)
        await to.delivered()
        to.offer(8, events=3)
        await to.delivered()
    one, several = server.requests
    assert one.line == "POST /in?k=1 HTTP/1.1"
    assert one.headers["host"] == f"127.0.0.1:{server.port}"
    assert one.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert several.headers["content-type"] == BATCH
    assert "webhook-signature" not in one.headers and "authorization" not in one.headers
    (event,) = one.events
    data = event.pop("data")
    assert data == {
        "tableName": "d1",
        "eventType": "WINDOW_CLOSE",
        "windowStart": 7,
        "eventTime": 1733284887197,
        "groupId": "53",
    }
    assert len(event.pop("id")) == 34
    assert event == {
        "specversion": "1.0",
        "source": "/streams/db.s",
        "type": "penstock.window.close",
        "subject": "d1",
        "time": "2024-12-04T04:01:27.197Z",
        "partitionkey": "53",
        "datacontenttype": "application/json",
    }
    assert server.starts() == [7, 8, 9, 10] and server.connections == 1


@pytest.mark.parametrize("cuts", [False, True])
async def test_everything_comes_in_order_over_answers_of_every_kind(cuts: bool) -> None:
    """A target that fails, cuts and comes back; each event has one id however often it comes."""
    async with web_server() as server, delivering(server.url) as to:
        server.cuts = cuts
        failing = [answer("500 Oh no"), None, OK, answer("404 No"), OK, None, None, answer("302 F")]
        server.answers += [*failing, OK, b"nonsense\r\n\r\n", OK]
        to.offer(*range(0, 1000, 10), events=5)
        await to.delivered()
    wanted = [n + i for n in range(0, 1000, 10) for i in range(5)]
    assert server.starts() == wanted
    ids = [(e["id"], e["data"]["windowStart"]) for r in server.requests for e in r.events]
    assert len(ids) > len(wanted), "what was not confirmed came again"
    assert len({i for i, _ in ids}) == len(set(ids)) == len(wanted)
    assert to.marks[-1] == 100


async def test_a_target_that_is_away_for_a_while_gets_what_came_meanwhile() -> None:
    """Nobody listens on its port meanwhile."""
    async with web_server() as server, delivering(server.url) as to:
        to.offer(1)
        await to.delivered()
        await server.go()
        to.offer(2, 3)
        while not to.one.down:
            await asyncio.sleep(0.01)
        to.offer(4)
        await asyncio.sleep(0.2)
        assert to.marks == [1] and to.one.down
        await server.come()
        await to.delivered()
        assert not to.one.down
    assert server.starts() == [1, 2, 3, 4]


async def test_only_what_was_not_confirmed_of_a_long_message_comes_again() -> None:
    """A target that takes one request and then rests gets on, whatever a message's length."""
    async with web_server() as server, delivering(server.url) as to:
        server.answers += [OK, answer("503 Later")] * 3
        to.offer(0, events=350)
        await to.delivered()
    assert server.starts() == list(range(350))
    assert [len(r.events) for r in server.requests] == [100, 100, 100, 100, 100, 50, 50]
    assert to.marks == [1]


async def test_a_request_that_is_too_large_is_made_smaller() -> None:
    async with web_server() as server, delivering(server.url) as to:
        server.answers += [answer("413 Too large"), answer("413 Too large")]
        to.offer(0, events=64)
        await to.delivered()
    assert [len(r.events) for r in server.requests[:4]] == [64, 16, 4, 4]
    assert server.starts() == list(range(64))


async def test_no_request_is_much_larger_than_64_kib() -> None:
    async with web_server() as server, delivering(server.url) as to:
        to.offer(0, events=30, padding=10_000)
        await to.delivered()
    assert server.starts() == list(range(30))
    assert max(len(r.body) for r in server.requests) < 80_000 and len(server.requests) == 5


async def test_messages_are_dropped_while_the_target_fails() -> None:
    async with web_server() as server, delivering(server.url, "drop") as to:
        server.answers += [answer("500 No")]
        to.offer(1)
        await to.delivered()
        while to.one.down:
            to.offer(2)
            await to.delivered()
            await asyncio.sleep(0.01)
    assert set(server.starts()) == {1, 2}
    assert [r.events[0]["data"]["windowStart"] for r in server.requests].count(1) == 1


# -------------------------------------------------------------------- signatures


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a key of thirty-two bytes or so…\n", "a key of thirty-two bytes or so…".encode()),
        ("whsec_" + base64.b64encode(b"0123456789abcdef\xff").decode(), b"0123456789abcdef\xff"),
    ],
)
async def test_a_signature_is_the_hmac_of_id_time_and_body(
    tmp_path: Path, text: str, key: bytes
) -> None:
    place = tmp_path / "secrets" / "notify" / "db" / "orders"
    place.parent.mkdir(parents=True)
    place.write_text(text, encoding="utf-8")
    clock = ManualClock(1_700_000_000_999_000_000)
    async with (
        web_server() as server,
        delivering(server.url, signed_by="db/orders", data_dir=tmp_path, clock=clock) as to,
    ):
        server.answers.append(answer("500 No"))
        to.offer(1, events=2)
        await to.delivered()
    first, again = server.requests
    signed = first.headers["webhook-id"].encode() + b".1700000000." + first.body
    code = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert first.headers["webhook-timestamp"] == "1700000000"
    assert first.headers["webhook-signature"] == f"v1,{code}"
    assert again.headers == first.headers and again.body == first.body


@pytest.mark.parametrize(
    ("signed_by", "text", "problem"),
    [
        ("db/none", None, "cannot be read"),
        ("../root.password", None, "a name that no file can have"),
        ("db/../x", None, "a name that no file can have"),
        ("db/short", SECRET, "is shorter than 16 bytes"),
        ("db/odd", f"whsec_{SECRET}!", "is no base64"),
        ("db/binary", b"\xff" * 40, "cannot be read"),
    ],
)
async def test_nothing_is_sent_without_the_key(
    tmp_path: Path, signed_by: str, text: str | bytes | None, problem: str
) -> None:
    folder = tmp_path / "secrets" / "notify" / "db"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / signed_by.partition("/")[2]).write_bytes(
            text if isinstance(text, bytes) else text.encode()
        )
    async with (
        web_server() as server,
        delivering(server.url, signed_by=signed_by, data_dir=tmp_path) as to,
    ):
        to.offer(1)
        while not to.one.down:
            await asyncio.sleep(0.01)
        assert problem in to.one.down and SECRET not in to.one.down
    assert server.requests == [] and not to.marks


async def test_a_login_in_the_address_is_sent_and_shown_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with web_server() as server:
        url = server.url.replace("//", f"//ann:{SECRET}%40@") + f"?token={SECRET}"
        async with delivering(url) as to:
            server.answers.append(answer(f"500 {SECRET}", body=SECRET))
            to.offer(1)
            while not to.one.down:
                await asyncio.sleep(0)
            assert to.one.down == "it answers with HTTP status 500"
            await to.delivered()
    login = base64.b64encode(f"ann:{SECRET}@".encode()).decode()
    assert server.requests[1].headers["authorization"] == f"Basic {login}"
    assert server.requests[1].headers["host"] == f"127.0.0.1:{server.port}"
    assert SECRET not in caplog.text and login not in caplog.text


# -------------------------------------------------------------------- hostile targets


@pytest.mark.parametrize("status", ["301", "302", "303", "307", "308"])
async def test_a_redirect_is_not_followed(status: str) -> None:
    async with web_server() as inside, web_server() as server, delivering(server.url) as to:
        server.answers += [answer(f"{status} Moved", f"Location: {inside.url}")] * 2
        to.offer(1)
        await to.delivered()
        assert inside.connections == 0
    assert len(server.requests) == 3


async def test_an_endless_answer_is_not_read() -> None:
    """The status says that the events arrived; the connection is given up."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    endless = head + b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
    async with web_server() as server, delivering(server.url) as to:
        server.answers.append(endless)
        to.offer(1)
        await to.delivered(5)
        to.offer(2)
        await to.delivered(5)
    assert server.starts() == [1, 2] and len(server.requests) == server.connections == 2


async def test_endless_headers_are_not_read() -> None:
    async with web_server() as server, delivering(server.url) as to:
        server.answers += [b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20)] * 2
        to.offer(1)
        await to.delivered(5)
    assert len(server.requests) == 3


async def test_a_target_that_does_not_answer_in_time_is_down() -> None:
    async with web_server() as server, delivering(server.url, ack_seconds=0.2) as to:
        server.answers += [b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, b"HTTP/1.1 200"]
        to.offer(1)
        while not to.one.down:
            await asyncio.sleep(0.01)
        assert to.one.down == "it does not answer in time"
        await to.delivered(5)
    assert len(server.requests) == 4


async def test_a_slow_answer_behind_its_status_is_not_waited_for() -> None:
    async with web_server() as server, delivering(server.url, ack_seconds=20) as to:
        server.answers.append(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx")
        to.offer(1)
        await to.delivered(5)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        ("999999999999999999999", 3600.0),
        ("-5", 0.0),
        ("soon", 0.0),
        (formatdate(1_700_000_090, usegmt=True), 90.0),
        (formatdate(1_600_000_000, usegmt=True), 0.0),
        ("Fri, 99 Nov 99999 99:99:99 GMT", 0.0),
        ("", 0.0),
    ],
)
async def test_how_long_a_target_asks_to_be_left_alone(said: str, seconds: float) -> None:
    async with web_server() as server:
        clock = ManualClock(1_700_000_000 * 10**9)
        async with delivering(server.url, clock=clock) as to:
            headers = [(b"Retry-After", said.encode())]
            assert to.one._connection._retry_after(headers) == seconds  # type: ignore[attr-defined]


async def test_a_target_that_asks_to_wait_is_left_alone_so_long() -> None:
    async with web_server() as server, delivering(server.url) as to:
        server.answers.append(answer("429 Slow down", "Retry-After: 1"))
        to.offer(1)
        begun = asyncio.get_running_loop().time()
        await to.delivered()
        assert asyncio.get_running_loop().time() - begun >= 1.0
    assert len(server.requests) == 2


async def test_the_mesh_itself_and_special_addresses_are_not_dialled() -> None:
    async with web_server() as server:
        own = Own((("127.0.0.1", server.port),))
        for host in ("127.0.0.1", "localhost", "127.1"):
            url = f"http://{host}:{server.port}/"
            async with delivering(url, is_own=own.holds) as to:
                to.offer(1)
                while not to.one.down:
                    await asyncio.sleep(0.01)
                assert "may not be notified" in to.one.down
        async with delivering("http://169.254.169.254/latest") as to:
            to.offer(1)
            while not to.one.down:
                await asyncio.sleep(0.01)
            assert to.one.down == "http://169.254.169.254:80 may not be notified"
    assert server.connections == 0


async def test_each_connection_goes_where_it_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that changes its address in between gains nothing."""
    asked: list[str] = []
    loop = asyncio.get_running_loop()
    real = loop.getaddrinfo

    async def answers(host: str, port: int, **more: object) -> object:
        if host != "hook.example.com":
            return await real(host, port, **more)  # type: ignore[arg-type]
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        return await real(address, port, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "getaddrinfo", answers)
    async with web_server() as server:
        server.cuts = True
        url = f"http://hook.example.com:{server.port}/in"
        async with delivering(url) as to:
            to.offer(1)
            await to.delivered()
            to.offer(2)
            while not to.one.down:
                await asyncio.sleep(0.01)
            assert "may not be notified" in to.one.down
    assert server.requests[0].headers["host"] == f"hook.example.com:{server.port}"
    assert server.starts() == [1] and len(asked) >= 2


async def test_a_certificate_must_be_trusted_and_have_the_name(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    async with web_server(context) as server:
        for host, trusted in (("localhost", None), ("127.0.0.1", ca)):
            async with delivering(f"https://{host}:{server.port}", tls_ca=trusted) as to:
                to.offer(1)
                while not to.one.down:
                    await asyncio.sleep(0.01)
                assert to.one.down.startswith("its certificate is not trusted")
        assert server.requests == []
        async with delivering(f"https://localhost:{server.port}", tls_ca=ca) as to:
            to.offer(1)
            await to.delivered()
    assert server.requests[0].line == "POST / HTTP/1.1" and server.starts() == [1]


async def test_a_port_that_nobody_listens_on_is_called_so() -> None:
    async with web_server() as server:
        url = server.url
    async with delivering(url, "drop") as to:
        to.offer(7)
        await to.delivered()
        assert to.one.down == "Connection refused"

"""Outbound connections: where the operator and the maker's rights allow, and never to the mesh
itself.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from penstock import names
from penstock.auth.access import Access
from penstock.catalog.model import Grant, User
from penstock.catalog.view import Catalog
from penstock.config.environment import MESH_VARIABLE
from penstock.config.settings import Settings
from penstock.errors import CatalogError, PenstockError
from penstock.foreign import SchemaRegistry
from penstock.link.address import Address, LinkLost
from penstock.link.client import Link
from penstock.outbound.reach import Outbound, Own, Reach, identity_of
from penstock.outbound.targets import AllowList, Resolved, TargetRefused, endpoint, resolve
from services.federation.settings import FederationSettings

SECRET = "SSH-2.0-hidden_banner secret=hunter2"
ADMIN = User(5, "boss", "h", grants=(Grant("ADMIN", 0),))
MAKER = User(6, "ann", "h", grants=(Grant("CREATE", 1),))
#: forms of this machine that getaddrinfo takes
HERE = [
    "127.0.0.1",
    "127.1",
    "127.0.0.2",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "localhost",
    "::1",
]
#: forms that are refused whatever is there
ODD = [
    "0.0.0.0",
    "0",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1",
    "64:ff9b:1::7f00:1",
    "2001:0:7f00:1::",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.0.23",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "192.80.8.124",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    "2852039166",
    "0xa9fea9fe",
    "255.255.255.255",
    "240.0.0.1",
    "224.0.0.1",
    "ff02::1",
    "fe80::1",
    "fec0::1",
    "100::1",
    "metadata",
    "metadata.google.internal",
    "METADATA.google.internal.",
    "instance-data",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
]


class Server:
    """Listens on this machine, and answers each connection with the same bytes."""

    def __init__(self, answer: bytes, host: str = "127.0.0.1") -> None:
        self._answer = answer
        self._socket = socket.create_server(
            (host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
        self.port: int = self._socket.getsockname()[1]
        self.heard: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                self.heard.append(connection.recv(4096))
                connection.sendall(self._answer)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def server(answer: bytes) -> Iterator[Server]:
    made = Server(answer)
    yield made
    made.close()


def http(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def outbound(*allow: str) -> Outbound:
    catalog = Catalog([ADMIN, MAKER])
    made = FederationSettings(
        external_allow=allow, kafka_bootstrap="127.0.0.1:7703", redis_url="redis://127.0.0.1:7705/0"
    )
    return Outbound(made, Access(lambda: catalog, "root"))


def words(error: PenstockError) -> str:
    return json.dumps(error.to_dict())


# ---------------------------------------------------------------- who may name what


@pytest.mark.parametrize("maker", ["root", "boss", ""])
def test_users_with_admin_may_name_any_host(maker: str) -> None:
    assert outbound().reach(maker).addresses("93.184.216.34", 9092) == ["93.184.216.34"]


@pytest.mark.parametrize("maker", ["ann", "nobody", "dropped"])
@pytest.mark.parametrize(
    "host", ["93.184.216.34", "127.0.0.1", "kafka.example.com", "no-such-name.invalid"]
)
def test_others_may_name_none_until_the_operator_does(maker: str, host: str) -> None:
    with pytest.raises(CatalogError) as refused:
        outbound().reach(maker).addresses(host, 9092)
    assert (
        refused.value.code == "E_EXTERNAL_HOST" and "PENSTOCK_EXTERNAL_ALLOW" in refused.value.hint
    )
    assert refused.value.detail == "", "what a name resolves to is not told"


@pytest.mark.parametrize("maker", ["root", "boss", "ann", ""])
def test_a_list_opens_hosts_to_others_and_closes_none_to_users_with_admin(maker: str) -> None:
    reach = outbound("10.0.0.0/8").reach(maker)
    assert reach.addresses("10.1.2.3", 9092) == ["10.1.2.3"]
    if maker in ("root", "boss"):
        assert reach.addresses("93.184.216.34", 9092) == ["93.184.216.34"]
        return
    # a list held for what was made when nobody's name was kept, and still does
    with pytest.raises(CatalogError, match="may not be connected to") as refused:
        reach.addresses("93.184.216.34", 9092)
    assert "PENSTOCK_EXTERNAL_ALLOW" in refused.value.hint


@pytest.mark.parametrize("allow", [(), ("10.0.0.0/8",)])
def test_rights_are_those_of_the_moment(allow: tuple[str, ...]) -> None:
    catalog = Catalog([ADMIN])
    reach = Outbound(Settings(external_allow=allow), Access(lambda: catalog, "root")).reach("boss")
    assert reach.addresses("93.184.216.34", 1)
    catalog.put(User(5, "boss", "h"))
    with pytest.raises(CatalogError):
        reach.addresses("93.184.216.34", 1)


@pytest.mark.parametrize("maker", ["root", "ann"])
@pytest.mark.parametrize("host", ODD)
def test_special_addresses_are_refused_whatever_their_form(host: str, maker: str) -> None:
    for allow in ((), ("*",), ("*.internal", "10.0.0.0/8")):
        with pytest.raises(CatalogError, match="may not be connected to"):
            outbound(*allow).reach(maker).addresses(host, 80)


def test_an_operator_may_open_a_special_network_by_name() -> None:
    assert outbound("169.254.10.0/24").reach("ann").addresses("169.254.10.7", 80) == [
        "169.254.10.7"
    ]


# ---------------------------------------------------------------- the mesh itself


@pytest.mark.parametrize("maker", ["root", "boss", "ann"])
@pytest.mark.parametrize("host", HERE)
@pytest.mark.parametrize("allow", [(), ("127.0.0.0/8", "::1", "localhost")])
def test_the_mesh_itself_is_refused_for_everybody(
    maker: str, host: str, allow: tuple[str, ...]
) -> None:
    reach = outbound(*allow).reach(maker)
    for port in (7700, 7701, 7702, 7703, 7705, 7707):
        with pytest.raises(CatalogError, match="may not be connected to"):
            reach.addresses(host, port)
        if host != "localhost":  # a name is resolved by the notifier, when it connects
            with pytest.raises(TargetRefused):
                reach.check_notify(
                    f"ws://[{host}]:{port}" if ":" in host else f"ws://{host}:{port}"
                )


def test_another_mesh_on_this_machine_is_not_the_mesh_itself() -> None:
    assert outbound().reach("root").addresses("127.0.0.1", 17707) == ["127.0.0.1"]


@pytest.mark.parametrize("maker", ["root", "boss", "ann"])
@pytest.mark.parametrize("host", HERE)
def test_a_link_does_not_go_to_the_meshs_own_federation_service(host: str, maker: str) -> None:
    with pytest.raises(CatalogError, match="may not be connected to"):
        outbound("127.0.0.0/8", "::1", "localhost").reach(maker, link=True).addresses(host, 7707)


def test_who_tries_things_out_with_one_mesh_may_let_links_go_there_and_nothing_else() -> None:
    settings = FederationSettings(external_self=True, kafka_bootstrap="127.0.0.1:7703")
    own = Outbound(settings, Access(lambda: Catalog([]), "root"))
    assert own.reach("root", link=True).addresses("127.0.0.1", 7707)
    assert own.own.identity == "", "its service takes them"
    for link, port in ((True, 7703), (False, 7707)):
        with pytest.raises(CatalogError):
            own.reach("root", link=link).addresses("127.0.0.1", port)


def test_links_say_from_which_mesh_they_come_and_nothing_of_its_key() -> None:
    key = "k" * 40
    mine, same, other = (
        identity_of(Settings(token_key=SecretStr(k))) for k in (key, key, "j" * 40)
    )
    assert mine == same != other and key not in mine and len(mine) == 32


def test_addresses_of_this_machines_interfaces_lead_here() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no other interface")
        mine = probe.getsockname()[0]
    assert Own((("127.0.0.1", 7703),)).holds(mine, 7703)
    assert not Own((("127.0.0.1", 7703),)).holds("192.0.2.1", 7703)


def test_every_port_of_a_process_of_the_mesh_is_its_own(tmp_path: Path) -> None:
    """Spark's ports are free ones, known to nobody."""
    text = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    environment = {**os.environ, MESH_VARIABLE: str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", text],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        own = Own(mesh=str(tmp_path))
        assert own.holds("127.0.0.1", port) and own.holds("::1", port)
        assert not own.holds("93.184.216.34", port)
        assert not Own(mesh=str(tmp_path / "other")).holds("127.0.0.1", port)
        process.kill()


async def test_a_notification_never_reaches_the_mesh() -> None:
    own = Own((("localhost", 7703),))
    for host in ("127.0.0.1", "localhost", "127.1", "2130706433"):
        with pytest.raises(TargetRefused, match="may not be notified"):
            await resolve(endpoint(f"ws://{host}:7703/x"), AllowList([]), own.holds, anywhere=True)
    assert (
        await resolve(endpoint("ws://127.0.0.1:7999"), AllowList([]), own.holds)
    ).address == "127.0.0.1"


async def test_a_host_that_is_not_listed_is_reached_for_users_with_admin_only() -> None:
    target = endpoint("ws://127.0.0.1:7999")
    listed = AllowList(["10.0.0.0/8"])
    with pytest.raises(TargetRefused):
        await resolve(target, listed)
    assert await resolve(target, listed, anywhere=True) == Resolved("127.0.0.1", listed=False)
    assert await resolve(target, AllowList(["127.0.0.0/8"])) == Resolved("127.0.0.1", listed=True)
    with pytest.raises(TargetRefused):
        await resolve(endpoint("ws://169.254.169.254:80"), listed, anywhere=True)


@pytest.mark.parametrize("maker", ["ann", "dropped"])
def test_notify_is_for_users_with_admin_until_the_operator_names_a_host(maker: str) -> None:
    target = "ws://hook.example.com:80"
    with pytest.raises(TargetRefused) as refused:
        outbound().reach(maker).check_notify(target)
    assert "PENSTOCK_NOTIFIER_NOTIFY_ALLOW" in refused.value.hint
    outbound("*.example.com").reach(maker).check_notify(target)
    outbound().reach("boss").check_notify(target)
    elsewhere = "ws://10.0.0.1:80"
    outbound("*.example.com").reach("boss").check_notify(elsewhere)
    with pytest.raises(TargetRefused):
        outbound("*.example.com").reach(maker).check_notify(elsewhere)
    with pytest.raises(TargetRefused):
        outbound("*.example.com").reach("boss").check_notify("ws://169.254.169.254:80")


@pytest.mark.parametrize("maker", ["ann", "dropped"])
def test_a_topic_is_for_users_with_admin_until_the_operator_lists_it(maker: str) -> None:
    target = "kafka://Alerts.eu"
    outbound().reach("boss").check_notify(target)
    outbound("kafka://Alerts.*").reach(maker).check_notify(target)
    for patterns in ((), ("*",), ("Alerts.eu",), ("kafka://alerts.*",), ("kafka://Alerts",)):
        with pytest.raises(TargetRefused) as refused:
            outbound(*patterns).reach(maker).check_notify(target)
        assert refused.value.message == "kafka://Alerts.eu may not be notified"
        assert "PENSTOCK_NOTIFIER_NOTIFY_ALLOW" in refused.value.hint
    # topics that are listed open no host
    with pytest.raises(TargetRefused):
        outbound("kafka://*").reach(maker).check_notify("ws://hook.example.com:80")


@pytest.mark.parametrize(
    "topic",
    [
        *names.BUILT_IN_TOPICS,
        names.NOTIFIER_CURSORS,
        names.ingest_topic("power"),
        names.ingest_topic("power", "own"),
        names.ingest_topic("power", generation=2),
        "__consumer_offsets",
        "_schemas",
        # would keep the topic of a database `power` from being made
        "in_power",
        "PENSTOCK_events",
        "..",
        "a b",
        "",
        "a/b",
        "u:secret@host",
    ],
)
def test_topics_of_the_mesh_are_nobodys_target(topic: str) -> None:
    with pytest.raises(TargetRefused) as refused:
        outbound("kafka://*").reach("root").check_notify(f"kafka://{topic}")
    assert "secret" not in str(refused.value)


# ---------------------------------------------------------------- what a foreign port answers


@pytest.mark.parametrize(
    "answer",
    [
        SECRET.encode() + b"\r\n",
        http(SECRET.encode(), "404 " + SECRET),
        http(SECRET.encode(), "426 Upgrade Required"),
        http(SECRET.encode(), f"302 {SECRET}", f"Location: http://169.254.169.254/{SECRET}"),
        http(SECRET.encode()),
        b"",
    ],
)
@pytest.mark.parametrize("allowed", [None, Reach()])
def test_a_link_says_nothing_of_what_the_port_answered(
    answer: bytes, allowed: Reach | None
) -> None:
    with server(answer) as there:
        with pytest.raises(PenstockError) as refused:
            Link(Address("127.0.0.1", there.port, allowed=allowed), timeout=5)
        assert "hidden" not in words(refused.value) and "hunter2" not in words(refused.value)
        assert len(there.heard) == 1, "no redirect is followed"


Ask = Callable[[SchemaRegistry], object]


@pytest.mark.parametrize(
    "ask", [lambda r: r.schema(5), lambda r: r.newest("x-value"), lambda r: r.descriptors(5)]
)
@pytest.mark.parametrize(
    "answer",
    [
        SECRET.encode() + b"\r\n",
        http(SECRET.encode(), "500 " + SECRET),
        http(SECRET.encode()),
        http(b"[" * 100_000),
        http(b"[1]"),
        http(json.dumps({"id": 5, "schema": SECRET}).encode()),
        http(json.dumps({"id": SECRET, "schema": {}}).encode()),
        http(json.dumps({"id": 5, "schema": json.dumps({"type": SECRET})}).encode()),
        http(b'{"schema": 5}'),
        http(b"{}"),
        b"",
        http(b'"' + b"x" * (2 << 20) + b'"'),
    ],
)
def test_a_registry_that_answers_secrets_has_none_of_them_told(answer: bytes, ask: Ask) -> None:
    with server(answer) as there:
        registry = SchemaRegistry(f"http://127.0.0.1:{there.port}")
        with pytest.raises(PenstockError) as refused:
            ask(registry)
        registry.close()
        assert "hidden" not in words(refused.value) and "hunter2" not in words(refused.value)


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
def test_a_registry_that_redirects_is_not_followed(status: str) -> None:
    with (
        server(http(b"{}")) as inside,
        server(http(b"", status, f"Location: http://127.0.0.1:{inside.port}/")) as there,
    ):
        registry = SchemaRegistry(f"http://127.0.0.1:{there.port}")
        with pytest.raises(PenstockError, match="refuses"):
            registry.schema(5)
        registry.close()
        assert inside.heard == []


def test_a_registry_is_dialled_where_it_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means another address at the next question gains nothing: it is asked once for
    each connection.
    """
    schema = json.dumps({"schema": '"string"'}).encode()
    with server(http(schema)) as there, server(http(schema)) as inside:
        real = socket.getaddrinfo
        answers = iter(["127.0.0.1", "169.254.169.254"])

        def rebinding(host: str, port: object, *rest: object, **more: object) -> object:
            if host == "rebinding.example":
                host = next(answers)
            return real(host, port, *rest, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(socket, "getaddrinfo", rebinding)
        registry = SchemaRegistry(f"http://rebinding.example:{there.port}", Reach())
        assert registry.schema(5) == "string"
        assert f"host: rebinding.example:{there.port}".encode() in there.heard[0].lower()
        with pytest.raises(CatalogError, match="may not be connected to"):
            registry.schema(6)
        registry.close()
        assert inside.heard == [] and len(there.heard) == 1


def test_a_registry_of_the_mesh_itself_is_never_asked() -> None:
    with server(http(b"{}")) as inside:
        own = Own((("127.0.0.1", inside.port),))
        registry = SchemaRegistry(f"http://127.1:{inside.port}", Reach(own=own))
        with pytest.raises(CatalogError, match="may not be connected to"):
            registry.schema(5)
        registry.close()
        assert inside.heard == []


def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = json.dumps({"schema": '"string"'}).encode()
    with server(http(schema)) as there, server(http(schema)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        registry = SchemaRegistry(f"http://127.0.0.1:{there.port}")
        assert registry.schema(5) == "string" and proxy.heard == []
        registry.close()


def test_a_link_is_dialled_where_it_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo
    asked = []

    def counting(host: str, *rest: object, **more: object) -> object:
        if host == "rebinding.example":
            asked.append(host)
            host = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        return real(host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", counting)
    with server(b"nothing") as there:
        with pytest.raises(LinkLost):
            Link(Address("rebinding.example", there.port, allowed=Reach()), timeout=5)
        assert len(there.heard) == 1 and asked == ["rebinding.example"]

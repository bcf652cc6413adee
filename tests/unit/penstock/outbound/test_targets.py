"""Which addresses NOTIFY may connect to."""

from __future__ import annotations

import ipaddress

import pytest

from penstock.outbound.targets import AllowList, TargetRefused, endpoint, label_of, resolve


def permits(patterns: list[str], host: str, address: str) -> bool:
    return AllowList(patterns).permits(host, ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "10.1.2.3", "93.184.216.34", "2001:db8::1"]
)
def test_by_default_ordinary_addresses_are_allowed(address: str) -> None:
    assert permits([], "somewhere", address)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "fd00:ec2::254",
        "224.0.0.1",
        "ff02::1",
        "0.0.0.0",
        "::",
        "::ffff:169.254.169.254",
        "255.255.255.255",
    ],
)
def test_metadata_and_the_like_are_refused(address: str) -> None:
    assert not permits([], "somewhere", address)
    assert not permits(["*"], "somewhere", address), "a pattern of names doesn't open them"


def test_a_network_that_is_named_is_allowed() -> None:
    assert permits(["169.254.10.0/24"], "x", "169.254.10.7")
    assert not permits(["10.0.0.0/8"], "x", "93.184.216.34")
    assert permits(["10.0.0.0/8"], "x", "10.9.9.9")
    assert permits(["::1"], "x", "::1")


def test_names() -> None:
    assert permits(["*.example.com"], "Hook.Example.com", "10.0.0.1")
    assert not permits(["*.example.com"], "example.com", "10.0.0.1")
    assert not permits(["hook.example.com"], "other", "10.0.0.1")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://h:1",
        "ws://h",
        "ws://:1",
        "ws://h:0",
        "ws://h:99999",
        "nonsense",
        "https://",
        "https://h:0",
        "file:///etc/passwd",
    ],
)
def test_urls_need_scheme_host_and_port(url: str) -> None:
    with pytest.raises(TargetRefused):
        endpoint(url)


def test_web_addresses_have_a_port_of_their_own() -> None:
    assert endpoint("http://h/x").port == 80
    assert endpoint("HTTPS://h").label == "https://h:443"
    assert endpoint("https://h:8443").port == 8443


def test_label_shows_nothing_secret() -> None:
    assert endpoint("wss://user:secret@h.example:8443/path?key=foo").label == "wss://h.example:8443"
    assert label_of("kafka://Alerts.eu") == "kafka://Alerts.eu"
    assert label_of("kafka://u:secret@b/t") == "an address that cannot be read"


async def test_resolved_address_is_checked() -> None:
    assert (await resolve(endpoint("ws://127.0.0.1:80"), AllowList([]))).address == "127.0.0.1"
    with pytest.raises(TargetRefused, match="may not be notified"):
        await resolve(endpoint("ws://169.254.169.254:80"), AllowList([]))
    with pytest.raises(TargetRefused):
        await resolve(endpoint("ws://localhost:80"), AllowList(["*.example.com"]))

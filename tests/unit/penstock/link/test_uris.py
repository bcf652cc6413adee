"""The grammar of tables by URI (features H1 to H11, H27): what is read, what is refused and in
which words, and render as its inverse.
"""

from __future__ import annotations

import itertools
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.link.uris import TableUri, UriError, parse, render

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).map(
    lambda s: unicodedata.normalize("NFC", s)
)
safe = st.text("abcXYZ019.-*_", min_size=1, max_size=12)
live = st.fixed_dictionaries(
    {
        "columns": st.lists(names, max_size=4, unique_by=str.lower).map(tuple),
        "on_disconnect": st.sampled_from(["clear", "retain"]),
        "retry_window_ms": st.integers(0, 2**40),
        "max_retries": st.integers(0, 2**40),
        "blink": st.booleans(),
        "wait_timeout_ms": st.none() | st.integers(0, 2**40),
    }
)
pq = st.builds(
    lambda table, query, options: TableUri("pq", table, query, **options), names, names, live
)
serials = st.builds(
    lambda table, serial, options: TableUri("pq", table, None, serial, **options),
    names,
    st.integers(0, 2**60),
    live,
)
hosts = st.sampled_from(["localhost", "10.1.2.3", "a_b.example.com", "[::1]"])
dh = st.builds(
    lambda scheme, table, host, port, kind: TableUri(
        scheme, table, host=host, port=port, kind=kind
    ),
    st.sampled_from(["dh", "dh+plain"]),
    safe,
    hosts,
    st.integers(1, 65535),
    st.sampled_from(["scope", "field"]),
)
proxies = st.builds(
    lambda inner: TableUri("dh", inner.table, host="gw", port=443, proxied=inner), dh | pq
)


@given(pq | serials | dh | proxies)
def test_parse_is_the_inverse_of_render(uri: TableUri) -> None:
    assert parse(render(uri)) == uri


@given(
    st.text(max_size=40)
    | st.builds(
        lambda s, t: s + t,
        st.sampled_from(["pq://", "dh://", "pq://a/scope/t?"]),
        st.text(max_size=30),
    )
)
def test_anything_else_is_one_kind_of_error(text: str) -> None:
    try:
        parse(text)
    except UriError:
        pass


def test_H1_by_name_and_by_serial() -> None:
    assert parse("pq://SomePQ/scope/some_table") == TableUri("pq", "some_table", "SomePQ")
    assert parse("pq://1234567890/scope/some_table") == TableUri(
        "pq", "some_table", None, 1234567890
    )
    assert parse("pq://name:123/scope/t").query == "123", "a name that looks like a serial"


def test_H10_parameters_in_any_order() -> None:
    parts = ["columns=Col1,Col2,Col3", "retryWindowMillis=30000", "maxRetries=3", "blink"]
    wanted = TableUri(
        "pq",
        "t",
        "P",
        columns=("Col1", "Col2", "Col3"),
        retry_window_ms=30_000,
        max_retries=3,
        blink=True,
    )
    assert {
        parse("pq://P/scope/t?" + "&".join(order)) for order in itertools.permutations(parts)
    } == {wanted}


@pytest.mark.parametrize(
    "name", ["Sla\\sh PQ", "a/b", "a?b", "a&b", "a#b", "50%", "a+b", "größe", "名前", " "]
)
def test_H11_names_are_percent_encoded(name: str) -> None:
    assert parse(f"pq://{quote(name, safe='')}/scope/t").query == name
    assert quote("Sla\\sh PQ") == "Sla%5Csh%20PQ"


def test_defaults() -> None:
    uri = parse("pq://P/scope/t")
    assert (uri.snapshot, uri.on_disconnect, uri.retry_window_ms, uri.max_retries, uri.blink) == (
        False,
        "clear",
        300_000,
        0,
        False,
    )
    assert (
        parse("pq://P/scope/t?snapshot").snapshot
        and not parse("pq://P/scope/t?snapshot=false").snapshot
    )
    assert (
        parse("pq://P/scope/t?blink=require").blink_required
        and not parse("pq://P/scope/t?blink=false").blink
    )
    assert parse("pq://P/scope/t?waitTimeout=PT1M20.5S").wait_timeout_ms == 80_500
    assert (parse("dh://h/scope/x").port, parse("dh+plain://h/scope/x").port) == (443, 10_000)
    assert parse("dh:///scope/x").host is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("xx://P/scope/t", "no resolver"),
        ("P/scope/t", "no URI"),
        ("pq://P/t", "/scope/"),
        ("pq://P/scope/", "no table"),
        ("pq:///scope/t", "no query"),
        ("pq://P/scope/t?nope=1", "no option"),
        ("pq://P/scope/t?blink&blink", "twice"),
        ("pq://P/scope/t?snapshot=yes", "true or false"),
        ("pq://P/scope/t?snapshot=true&onDisconnect=retain", "no meaning"),
        ("pq://P/scope/t?snapshot&blink", "no meaning"),
        ("pq://P/scope/t?columns=a,,b", "empty"),
        ("pq://P/scope/t?columns=a,A", "twice"),
        ("pq://P/scope/t?onDisconnect=keep", "clear or retain"),
        ("pq://P/scope/t?retryWindowMillis=-1", "whole number"),
        ("pq://P/scope/t?maxRetries=x", "whole number"),
        ("pq://P/scope/t?waitTimeout=20s", "ISO 8601"),
        ("pq://P/scope/t?waitTimeout=PT", "ISO"),
        ("pq://a%zz/scope/t", "percent"),
        ("pq://a%ff/scope/t", "UTF-8"),
        ("pq://P/scope/t#x", "fragment"),
        ("pq://u:p@P/scope/t", "credentials"),
        ("dh://h/scope/a%20b", "cannot stand"),
        ("dh://h/scope/a/b", "cannot stand"),
        ("dh://h/scope/x?snapshot=true", "options"),
        ("dh://h/nothing/x", "no table"),
        ("dh:///field/x", "needs a host"),
        ("dh://h:0/scope/x", "no port"),
        ("dh://h o/scope/x", "no host"),
    ],
)
def test_H2_each_fault_has_its_own_words(text: str, words: str) -> None:
    with pytest.raises(UriError, match=words):
        parse(text)

"""SETTINGS of external streams: what they mean, what is refused, and that a password is shown
nowhere.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.catalog.model import External
from penstock.errors import CatalogError, PenstockError
from penstock.link import external
from penstock.link.address import Address, LinkLost
from penstock.link.pool import connect_any
from penstock.sql import parse_one
from penstock.sql.plan import Column
from penstock.sql.source import mask
from penstock.sql.statements import CreateExternalStream
from penstock.types import ColumnType

_GOOD = {"type": "penstock", "hosts": "h1:1,h2|h3:3", "stream": "s"}


def test_shards_replicas_ports_and_defaults() -> None:
    found = external.read_settings(_GOOD, Path("/nowhere"))
    assert found.shards == (("h1:1",), ("h2:7707", "h3:3"))
    assert (found.db, found.user, found.password, found.secure) == ("default", "default", "", False)
    assert external.read_settings(
        {**_GOOD, "hosts": "h", "secure": "true"}, Path("/nowhere")
    ).shards == (("h:7708",),)
    assert external.read_settings(
        {**_GOOD, "type": "timeplus", "hosts": "h"}, Path("/nowhere")
    ).shards == (("h:8463",),)
    assert external.read_settings(
        {**_GOOD, "type": "timeplus", "hosts": "h", "secure": "true"}, Path("/nowhere")
    ).shards == (("h:9440",),)
    assert external.read_settings({**_GOOD, "hosts": "[::1]:5"}, Path("/nowhere")).addresses() == [
        (Address("::1", 5, "default"),)
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hosts": ""}, "Setting `hosts` cannot be empty"),
        ({"stream": ""}, "Setting `stream` cannot be empty"),
        ({"type": "x"}, "not known"),
        ({"nope": "1"}, "no setting nope"),
        ({"secure": "maybe"}, "true or false"),
        ({"hosts": "h:0"}, "no host"),
        ({"hosts": "h,,g"}, "no host"),
        ({"hosts": "u@h"}, "no host"),
        ({"hosts": ",".join(["h"] * 65)}, "64"),
        ({"password": "a", "password_file": "/x"}, "same thing"),
        ({"password_file": "not-there"}, "cannot be read"),
        ({"password_file": "../root.password"}, "secrets/external/"),
        ({"password_file": "/etc/passwd"}, "secrets/external/"),
    ],
)
def test_what_is_refused(changes: dict[str, str], words: str) -> None:
    with pytest.raises(CatalogError, match=words):
        external.read_settings({**_GOOD, **changes}, Path("/nowhere"))


def test_a_password_is_shown_nowhere(tmp_path: Path) -> None:
    entry = External(
        7,
        "d",
        "x",
        "penstock",
        (("h:1",),),
        "db",
        "s",
        (Column("ts", ColumnType("TIMESTAMP")),),
        user="u",
    )
    external.keep_secret(tmp_path, 7, "the secret")
    assert external.secret_path(tmp_path, 7).stat().st_mode & 0o777 == 0o600
    ((address,),) = external.addresses(entry, tmp_path, ())
    assert (
        address.password == "the secret"
        and "secret" not in repr(address)
        and "the secret" not in external.definition_sql(entry)
    )
    external.forget_secret(tmp_path, 7)
    assert external.addresses(entry, tmp_path, ())[0][0].password == ""


def test_the_allow_list_holds_when_a_link_is_opened(tmp_path: Path) -> None:
    entry = External(
        7,
        "d",
        "x",
        "penstock",
        (("127.0.0.1:1",),),
        "db",
        "s",
        (Column("ts", ColumnType("TIMESTAMP")),),
        user="u",
    )
    (narrowed,) = external.addresses(entry, tmp_path, ("10.0.0.0/8", "*.example.com"))
    with pytest.raises(CatalogError) as refused:
        connect_any(narrowed, timeout=5)
    assert (
        refused.value.code == "E_EXTERNAL_HOST" and "PENSTOCK_EXTERNAL_ALLOW" in refused.value.hint
    )
    for allowed in ((), ("127.0.0.0/8",)):
        (replicas,) = external.addresses(entry, tmp_path, allowed)
        with pytest.raises(LinkLost):  # it may be dialled, and nobody is there
            connect_any(replicas, timeout=5)


@pytest.mark.parametrize(
    ("quoted", "meant"),
    [("'it''s one'", "it's one"), ("'a\\'b'", "a'b"), ('"x y"', "x y"), ("'open", None)],
)
def test_text_is_masked(quoted: str, meant: str | None) -> None:
    text = f"CREATE EXTERNAL STREAM s SETTINGS type='penstock', password = {quoted}"
    assert quoted not in mask(text) and len(mask(text)) == len(text)
    if meant is None:
        with pytest.raises(PenstockError):
            parse_one(text)
        return
    statement = parse_one(text + ", hosts='h'")
    assert isinstance(statement, CreateExternalStream)
    assert dict(statement.settings)["password"] == meant

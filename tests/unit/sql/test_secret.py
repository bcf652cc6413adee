from __future__ import annotations

import time

import pytest

from penstock.errors import SqlError
from penstock.sql import parse
from penstock.sql.secret import hide, mask

TEXTS = [
    "CREATE USER bob PASS 'hunter2 it''s'",
    'create user bob\n pass\t"hunter2"',
    "ALTER USER bob 'hunter2'",
    "alter user bob PASS 'hunter2",
    "CREATE EXTERNAL STREAM e (a INT) SETTINGS type='penstock', password='hunter2', token = \"hunter2\"",
]


@pytest.mark.parametrize("text", TEXTS)
def test_no_form_of_a_statement_shows_its_password(text: str) -> None:
    assert "hunter2" not in mask(text) and len(mask(text)) == len(text)
    assert "hunter2" not in hide(text)
    assert text.split()[:3] == hide(text).split()[:3]


def test_other_strings_stay() -> None:
    text = "INSERT INTO t VALUES (1, 'password', 'it''s')"
    assert mask(text) == hide(text) == text


@pytest.mark.parametrize("text", [f"{t} nonsense (" for t in TEXTS[:4]])
def test_errors_do_not_show_it_either(text: str) -> None:
    with pytest.raises(SqlError) as refused:
        parse(f"SELECT 1;\n{text}")
    assert "hunter2" not in str(refused.value) and "hunter2" not in str(refused.value.to_dict())


NOTIFY = (
    "CREATE STREAM s INTO r AS SELECT _wstart FROM t INTERVAL(1s) NOTIFY ({}) ON ('WINDOW_CLOSE')"
)
ADDRESSES = [
    "'wss://ann:hunter2@hook.example:8443/in'",
    "'kafka://ann:hunter2@broker/topic'",
    "'kafka://topic?hunter2'",
    "'ws://h:1/in?token=hunter2'",
    "'WS://h:1?hunter2'",
    "'ws://h:1/T0AB12/hunter2hunter2'",
    "'ws://h:1/#hunter2'",
    "'ws://ann:it''s-hunter2@h:1/in'",
    "'ws://ann:hunter2/x@h:1/in'",
    '"wss://hunter2@h:1"',
    "'ws://h:1/in', 'ws://h:2/?k=hunter2'",
    "'ws://a@b:hunter2@h:1'",
    "'ann:hunter2@h:1/in'",
    "'ws:hunter2'",
    "'ws://h:1/a;key=hunter2'",
    "'  wss://ann:hunter2@h:1'",
    "'ws://ann:hunter2@h:1",
    "'ws://h:1/hunter2'",
    "'https://ann:hunter2@hook.example/in'",
    "'http://h/in?token=hunter2', 'https://h/T0AB12/hunter2hunter2'",
    "'HTTPS://ann:hunter2@h:1",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_shows_neither_password_nor_token(address: str) -> None:
    text = NOTIFY.format(address)
    assert "hunter2" not in mask(text) and len(mask(text)) == len(text)
    assert "hunter2" not in hide(text) and "CREATE STREAM s INTO r" in hide(text)
    with pytest.raises(SqlError) as refused:
        parse(f"{text} nonsense (")
    assert "hunter2" not in str(refused.value) and "hunter2" not in str(refused.value.to_dict())


@pytest.mark.parametrize(
    "address",
    [
        "'ws://h:1/a'",
        "'wss://hook.example.com:8443/in/v1/latest'",
        "'ws://[::1]:80/'",
        "'ws://10.0.0.1:80'",
        "'https://hook.example.com/in/v1/latest'",
        "'kafka://Alerts.eu_2-x', \"KAFKA://t\"",
    ],
)
def test_the_rest_of_an_address_stays(address: str) -> None:
    assert hide(NOTIFY.format(address)) == mask(NOTIFY.format(address)) == NOTIFY.format(address)


def test_web_addresses_are_secret_in_statements_about_streams_only() -> None:
    row = "INSERT INTO t VALUES (1, 'https://h/page?id=hunter2')"
    assert hide(row) == mask(row) == row
    for address in ("'https://h/x?k=hunter2'", "'kafka://u:hunter2@h'"):
        misspelt = NOTIFY.replace("NOTIFY (", "NOTIFI (").format(address)
        assert "hunter2" not in hide(misspelt) and "hunter2" not in mask(misspelt)


def test_hiding_takes_time_that_grows_with_the_text_only() -> None:
    for text in (
        "NOTIFY (" + "'ws://a@" * 20_000,
        "NOTIFY (" * 20_000,
        "NOTIFY ('" + "@" * 100_000,
        "NOTIFY (" + "'a' " * 50_000,
    ):
        begun = time.process_time()
        hide(text)
        assert time.process_time() - begun < 2.0

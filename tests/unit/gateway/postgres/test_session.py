from __future__ import annotations

import pytest

from gateway.postgres.session import PgAnswer, PgSession
from gateway.postgres.translate import split_statements
from penstock.errors import SqlSemanticError


def session() -> PgSession:
    return PgSession("ann", "127.0.0.1", with_password=True)


def run(made: PgSession, text: str) -> PgAnswer | None:
    return made.run(split_statements(text)[0])


def show(made: PgSession, name: str) -> object:
    answer = run(made, f"SHOW {name}")
    assert answer is not None and answer.table is not None
    return answer.table.column(0)[0].as_py()


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("SET application_name = 'my \"tool\"'", "application_name", 'my "tool"'),
        ("SET SESSION timezone TO 'Europe/Berlin'", "TimeZone", "Europe/Berlin"),
        ("SET TIME ZONE 'UTC'", "TIME ZONE", "UTC"),
        ('set search_path to "$user", plant, public', "search_path", "plant"),
        ("SET LOCAL statement_timeout = '2min'", "statement_timeout", "120000"),
        ("SET NAMES 'utf8'", "client_encoding", "UTF8"),
        ("SET extra_float_digits = 3", "extra_float_digits", "3"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "transaction_read_only", "on"),
    ],
)
def test_settings_are_taken_and_shown(text: str, name: str, value: str) -> None:
    made = session()
    answer = run(made, text)
    assert answer is not None and answer.tag == "SET"
    assert show(made, name) == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SET client_encoding = 'latin1'", "E_BAD_OPTION"),
        ("SET standard_conforming_strings = off", "E_BAD_OPTION"),
        ("SET timezone = 'Nowhere/Else'", "E_BAD_OPTION"),
        ("SET server_version = '99'", "E_BAD_OPTION"),
        ("SET transaction_read_only = off", "E_READ_ONLY"),
        (f"SET a = '{'x' * 2000}'", "E_TOO_LONG"),
    ],
)
def test_settings_that_cannot_be_are_refused(text: str, code: str) -> None:
    with pytest.raises(SqlSemanticError) as wrong:
        run(session(), text)
    assert wrong.value.code == code


def test_settings_go_back() -> None:
    made = session()
    for text in ("SET timezone = 'Asia/Tokyo'", "SET search_path = d", "SET a.b = 'c'"):
        run(made, text)
    run(made, "RESET ALL")
    assert (made.timezone, made.database, made.own) == ("UTC", None, {})


@pytest.mark.parametrize("text", ["RESET ALL", "DISCARD ALL"])
def test_settings_go_back_to_what_the_connection_began_with(text: str) -> None:
    made = session()
    made.begin({"timezone": "Europe/Berlin", "search_path": "plant", "application_name": "pool"})
    for changed in (
        "SET timezone = 'Asia/Tokyo'",
        "SET search_path = d",
        "SET application_name = x",
    ):
        run(made, changed)
    run(made, text)
    assert (made.timezone, made.database) == ("Europe/Berlin", "plant")
    assert show(made, "application_name") == "pool"


@pytest.mark.parametrize("value", ["'utf-8'", "UTF8", "utf_8", "Unicode"])
def test_an_encoding_is_its_letters_and_digits(value: str) -> None:
    made = session()
    made.begin({"client_encoding": value})
    assert show(made, "client_encoding") == "UTF8"
    with pytest.raises(SqlSemanticError):
        made.begin({"client_encoding": "latin1"})


def test_default_is_what_the_connection_began_with() -> None:
    made = session()
    made.begin({"timezone": "Europe/Berlin"})
    for text in ("SET timezone = 'Asia/Tokyo'", "SET timezone TO DEFAULT", "SET search_path = d"):
        run(made, text)
    run(made, "SET search_path TO DEFAULT")
    assert (made.timezone, made.database) == ("Europe/Berlin", None)


def test_a_client_has_a_bounded_number_of_settings_of_its_own() -> None:
    made = session()
    for number in range(200):
        run(made, f"SET my.setting{number} = 1")
    assert len(made.own) <= 64


def test_what_is_no_setting_is_left_to_the_dialect() -> None:
    assert run(session(), "SHOW TABLES") is None
    assert run(session(), "SELECT 1") is None


@pytest.mark.parametrize(
    ("text", "tag", "status"),
    [
        ("BEGIN", "BEGIN", "T"),
        ("START TRANSACTION READ ONLY", "START TRANSACTION", "T"),
        ("COMMIT", "COMMIT", "I"),
        ("END", "COMMIT", "I"),
        ("ROLLBACK", "ROLLBACK", "I"),
        ("SAVEPOINT a", "SAVEPOINT", "I"),
        ("DISCARD ALL", "DISCARD ALL", "I"),
    ],
)
def test_words_of_transactions_are_taken(text: str, tag: str, status: str) -> None:
    made = session()
    answer = run(made, text)
    assert answer is not None and (answer.tag, made.status) == (tag, status)


def test_a_failed_transaction_goes_on_from_a_savepoint() -> None:
    made = session()
    run(made, "BEGIN")
    made.status = "E"
    run(made, "ROLLBACK TO SAVEPOINT a")
    assert made.status == "T"

"""The prompt as keys and lines: what is run, completed, kept and printed."""

from __future__ import annotations

import io
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from penstock.cli.prompt import loop
from penstock.cli.prompt.completion import DialectCompleter
from penstock.cli.prompt.names import Names
from penstock.cli.prompt.session import Conversation, Leave
from penstock.client.connection import Connection
from penstock.sql.vocabulary import vocabulary
from tests.unit.penstock.cli.prompt.kit import gateway

Asked = list[tuple[str, str | None]]


@pytest.fixture
def there() -> Iterator[tuple[Connection, Asked]]:
    with gateway() as made:
        yield made


@pytest.fixture
def session(there: tuple[Connection, Asked]) -> Conversation:
    return Conversation(there[0], io.StringIO())


def said(session: Conversation) -> str:
    assert isinstance(session.out, io.StringIO)
    return session.out.getvalue()


def typed(there: tuple[Connection, Asked], keys: str, history: Path | None = None) -> str:
    out = io.StringIO()
    with create_pipe_input() as pipe:
        pipe.send_text(keys)
        loop.run(there[0], out, history, terminal=(pipe, DummyOutput()))
    return out.getvalue()


def test_a_statement_goes_over_lines_until_its_semicolon(there: tuple[Connection, Asked]) -> None:
    out = typed(there, "SELECT n\rFROM meters;\r\\q\r")
    assert there[1] == [("SELECT n\nFROM meters;", None)]
    assert "n\n-\n7\n8\n(2 rows)\n" in out


def test_ctrl_c_drops_what_is_typed_and_ctrl_d_leaves(there: tuple[Connection, Asked]) -> None:
    typed(there, "SELECT nonsense\x03SELECT 1;\r\x04")
    assert there[1] == [("SELECT 1;", None)]


def test_history_is_kept_for_its_owner_and_without_secrets(
    there: tuple[Connection, Asked], tmp_path: Path
) -> None:
    file = tmp_path / "state" / "history"
    typed(there, "SELECT 1;\rCREATE USER ann PASS 'x';\r\\q\r", file)
    assert "SELECT 1;" in file.read_text() and "ann" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = len(there[1])
    typed(there, "\x1b[A\x1b[A\r\\q\r", file)  # twice up: over \q to the statement
    assert there[1][again:] == [("SELECT 1;", None)]


def test_use_holds_for_what_comes(session: Conversation, there: tuple[Connection, Asked]) -> None:
    session.run("USE power;")
    session.run("SELECT 1;")
    assert there[1] == [("USE power;", None), ("SELECT 1;", "power")]
    session.run("\\c")
    assert said(session).endswith("power\n")


def test_errors_are_printed_and_the_prompt_goes_on(session: Conversation) -> None:
    session.run("SELEC;")
    session.run("INSERT;")
    assert "E_SYNTAX: this is no statement" in said(session)
    assert said(session).endswith("2 rows written\n")


def test_each_of_several_statements_is_shown(
    session: Conversation, there: tuple[Connection, Asked]
) -> None:
    session.run("USE power; SELECT 1; SELECT n\nFROM meters; SELEC; SELECT 1;")
    assert [sql for sql, _ in there[1]] == [
        "USE power;",
        "SELECT 1;",
        "SELECT n\nFROM meters;",
        "SELEC;",
    ]
    assert there[1][-1][1] == "power"
    assert "1\n-\n1\n(1 row)\nn\n-\n7\n8\n(2 rows)\nE_SYNTAX" in said(session)


def test_words_of_other_prompts_do_what_they_do_there(there: tuple[Connection, Asked]) -> None:
    out = typed(there, "help\rexit\r")
    assert "\\watch [SECONDS]" in out and there[1] == []


def test_commands(session: Conversation, there: tuple[Connection, Asked]) -> None:
    session.run("\\streams")
    session.run("\\d")
    assert said(session).count("which database?") == 2
    session.run("\\c power")
    session.run("\\d")
    session.run("\\d meters")
    session.run("\\streams")
    assert there[1][-1] == ("SHOW STREAMS", "power")
    assert "meadows" in said(session) and "voltage" in said(session)
    session.run("\\timing")
    session.run("\\x")
    session.run("SELECT 1;")
    assert "--- row 1 ---\n1  1\n(1 row)\n" in said(session)
    assert said(session).rstrip().endswith("ms")
    session.run("\\o csv")
    session.run("SELECT n\nFROM meters;")
    assert "n\n7\n8\n" in said(session)
    session.run("\\o parquet")
    session.run("\\nothing")
    assert "\\o takes table, vertical" in said(session)
    assert "there is no command \\nothing; \\? lists them" in said(session)
    session.run("\\?")
    assert "\\watch [SECONDS]" in said(session)
    with pytest.raises(Leave):
        session.run("\\q")


def test_long_tables_are_cut_and_say_so(session: Conversation) -> None:
    session.run("LONG;")
    assert said(session).count("\n") == 1_003
    assert said(session).endswith("(1,500 rows, the first 1,000 shown)\n")


def test_watch_repeats_the_last_statement(
    session: Conversation, there: tuple[Connection, Asked]
) -> None:
    session.run("\\watch")
    session.run("\\watch soon")
    assert "there is none yet" in said(session) and "takes seconds" in said(session)
    session.run("SELECT 1;")
    watching = threading.Thread(target=session.run, args=("\\watch 0.1",))
    watching.start()
    while len(there[1]) < 4:
        assert watching.is_alive()
    session.halt.set()
    watching.join(10)
    assert not watching.is_alive()
    assert {sql for sql, _ in there[1]} == {"SELECT 1;"}
    assert "every 0.1 s, Ctrl-C ends it: SELECT 1;" in said(session)


@pytest.mark.parametrize(
    ("text", "offered", "not_offered"),
    [
        ("SEL", "SELECT", "meters"),
        ("SELECT vol", "", "VARCHAR"),
        ("SELECT * FROM me", "meters", "MEDIAN("),
        ("SELECT * FROM ", "power", "SELECT"),
        ("USE p", "plant", "pow("),
        ("SELECT lev", "levenshtein(", ""),
        ("\\t", "timing", "trim("),
        ("\\d mea", "meadows", "meters"),
    ],
)
def test_completion(session: Conversation, text: str, offered: str, not_offered: str) -> None:
    session.client.database = "power"
    names = Names(lambda sql, parameters: session.client.query(sql, parameters).rows)
    completer = DialectCompleter(session, vocabulary(), names)
    found = [c.text for c in completer.get_completions(Document(text), CompleteEvent())]
    assert not offered or offered in found
    assert not_offered not in found


def test_columns_of_the_tables_of_the_statement(session: Conversation) -> None:
    names = Names(lambda sql, parameters: session.client.query(sql, parameters).rows)
    completer = DialectCompleter(session, vocabulary(), names)
    document = Document("SELECT vol FROM meters", len("SELECT vol"))
    found = [c.text for c in completer.get_completions(document, CompleteEvent())]
    assert found[:2] == ["voltage", "volume"]


def test_names_are_asked_for_once_and_again_after_a_statement(
    session: Conversation, there: tuple[Connection, Asked]
) -> None:
    names = Names(lambda sql, parameters: session.client.query(sql, parameters).rows)
    assert names.databases() == names.databases() == ("power", "plant")
    assert len(there[1]) == 1
    names.forget()
    names.databases()
    assert len(there[1]) == 2
    assert names.columns("nothing") == ()

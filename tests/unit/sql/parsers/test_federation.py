"""External streams and materialized views."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.sql.dialect import to_sql
from penstock.sql.parsers.federation import FederationParser
from penstock.sql.statements import (
    ColumnDef,
    CreateExternalStream,
    CreateView,
    Name,
    SteerView,
)
from penstock.types import ColumnType
from tests.unit.sql.reading import read, reader, refused


def external(text: str) -> Any:
    return read(FederationParser, text, FederationParser.create_external_stream)


def view(text: str) -> Any:
    return read(FederationParser, text, FederationParser.create_view)


def steered(text: str) -> Any:
    return read(FederationParser, text, FederationParser.system)


def test_settings_are_texts_with_keys_in_lower_case() -> None:
    text = "IF NOT EXISTS db.s SETTINGS Type='penstock', secure=TRUE, port = 7790, `a b`='it''s'"
    assert external(text) == CreateExternalStream(
        stream=Name("s", "db"),
        settings=(("type", "penstock"), ("secure", "true"), ("port", "7790"), ("a b", "it's")),
        if_not_exists=True,
    )


def test_an_external_stream_may_have_columns() -> None:
    found = external("s (ts TIMESTAMP, a INT) SETTINGS x='y'")
    assert found.columns == (
        ColumnDef("ts", ColumnType("TIMESTAMP")),
        ColumnDef("a", ColumnType("INT")),
    )


@pytest.mark.parametrize(
    ("text", "target", "on_error"),
    [
        ("v AS SELECT a FROM t", None, None),
        ("v INTO db.o AS SELECT a FROM t", Name("o", "db"), None),
        ("v ON_ERROR STOP AS SELECT a FROM t", None, "stop"),
        ("v ON_ERROR drop INTO o AS SELECT a FROM t", Name("o"), "drop"),
    ],
)
def test_a_view_has_a_target_and_a_way_with_errors(
    text: str, target: Name | None, on_error: str | None
) -> None:
    found = view(text)
    assert isinstance(found, CreateView)
    assert (found.view, found.target, found.on_error) == (Name("v"), target, on_error)
    assert to_sql(found.query) == "SELECT a FROM t"
    assert text[found.query_offset :].startswith("SELECT")


@pytest.mark.parametrize(
    ("text", "action"), [("PAUSE", "pause"), ("UNPAUSE", "resume"), ("RESUME", "resume")]
)
def test_a_view_is_steered(text: str, action: Any) -> None:
    assert steered(f"{text} MATERIALIZED VIEW db.v") == SteerView(
        view=Name("v", "db"), action=action
    )


def test_a_permanent_pause_is_a_pause_with_a_notice() -> None:
    parser = reader(FederationParser, "PAUSE MATERIALIZED VIEW v PERMANENT")
    assert parser.system() == SteerView(view=Name("v"), action="pause")
    assert parser.at_end and parser.notices[0].startswith("PERMANENT")


@pytest.mark.parametrize(
    ("rule", "text", "code", "column", "message"),
    [
        (external, "s", "E_SYNTAX", 2, "expected SETTINGS, but the statement ends"),
        (external, "s SETTINGS x", "E_SYNTAX", 13, 'expected "=", but the statement ends'),
        (
            external,
            "s SETTINGS x=1.5",
            "E_SYNTAX",
            14,
            "expected a string, a number, true or false",
        ),
        (external, "s SETTINGS x='1', X='2'", "E_OPTION_TWICE", 21, "x is given twice"),
        (external, "s (a INT) SETTINGS x='1'", "E_NO_TIME_COLUMN", 4, "the first column must be"),
        (view, "v INTO a INTO b AS SELECT 1", "E_OPTION_TWICE", 10, "INTO is given twice"),
        (view, "v ON_ERROR STOP ON_ERROR STOP AS SELECT 1", "E_OPTION_TWICE", 17, "ON_ERROR is"),
        (view, "v ON_ERROR SKIP AS SELECT 1", "E_SYNTAX", 12, "expected STOP or DROP, found SKIP"),
        (view, "v SELECT 1", "E_SYNTAX", 3, "expected AS, found SELECT"),
        (steered, "STOP MATERIALIZED VIEW v", "E_SYNTAX", 1, "expected PAUSE, UNPAUSE or RESUME"),
        (steered, "PAUSE VIEW v", "E_SYNTAX", 7, "expected MATERIALIZED, found VIEW"),
        (
            steered,
            "RESUME MATERIALIZED VIEW v PERMANENT",
            "E_SYNTAX",
            28,
            "the statement should end here, found PERMANENT",
        ),
    ],
)
def test_a_fault_is_refused_at_its_place(
    rule: Any, text: str, code: str, column: int, message: str
) -> None:
    found = refused(lambda: rule(text))
    assert found[:3] == (code, 1, column)
    assert found[3].startswith(message)

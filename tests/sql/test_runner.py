"""The runner itself: what it reads, and what it does not let pass."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import SqlSemanticError
from tests.sql import values
from tests.sql.play import play
from tests.sql.script import Context, ScriptError, read

ROWS = pa.table({"a": [1, 2], "s": ["x", None]})


class Told:
    """Answers every statement with one table, or one error."""

    name = "memory"

    def __init__(self, answer: pa.Table | SqlSemanticError) -> None:
        self._answer = answer
        self.asked: list[tuple[str, Context]] = []

    def run(self, sql: str, context: Context) -> pa.Table:
        self.asked.append((sql, context))
        if isinstance(self._answer, SqlSemanticError):
            raise self._answer
        return self._answer


def played(tmp_path: Path, text: str, backend: Told) -> list[str]:
    path = tmp_path / "some.test"
    path.write_text(text)
    return list(play(read(path), backend))


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        ("query IT", "1  x\n2  NULL"),
        ("query I?", "1\tx\n2\tNULL"),
        ("query IT rowsort", "2  NULL\n1  x"),
        ("query IT nosort some", "1  x\n2  NULL"),
        ("fails some reason\nquery IT", "1  x"),
        ("skipif memory\nquery IT", "1  x"),
        ("onlyif mesh\nquery IT", "1  x"),
    ],
)
def test_what_is_as_expected(tmp_path: Path, head: str, rows: str) -> None:
    assert played(tmp_path, f"{head}\nSELECT\n----\n{rows}\n", Told(ROWS)) == []


@pytest.mark.parametrize(
    ("head", "rows", "words"),
    [
        ("query IT", "1  x", "gives"),
        ("query IT", "1  x\n2  NULL\n3  y", "gives"),
        ("query IT", "2  NULL\n1  x", "gives"),
        ("query IT", "1  x\n2  (empty)", "gives"),
        ("query RT", "1  x\n2  NULL", "column a is I, not R"),
        ("query I", "1\n2", "has 2 columns"),
        ("fails some reason\nquery IT", "1  x\n2  NULL", "now passes"),
    ],
)
def test_what_is_not(tmp_path: Path, head: str, rows: str, words: str) -> None:
    (wrong,) = played(tmp_path, f"{head}\nSELECT\n----\n{rows}\n", Told(ROWS))
    assert words in wrong


class Changing(Told):
    """Answers with other rows each time."""

    def run(self, sql: str, context: Context) -> pa.Table:
        self.asked.append((sql, context))
        return pa.table({"a": [len(self.asked)]})


def test_queries_of_one_label_give_the_same(tmp_path: Path) -> None:
    text = "query I {}\nSELECT\n----\n1\n\nquery I {}\nSELECT\n----\n2\n"
    assert played(tmp_path, text.format("nosort one", "nosort two"), Changing(ROWS)) == []
    (wrong,) = played(tmp_path, text.format("nosort one", "nosort one"), Changing(ROWS))
    assert "label one" in wrong


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("statement error E_SEMANTIC", ""),
        ("statement error E_OTHER|E_SEMANTIC", ""),
        ("statement error E_SEMANTIC no .* meaning", ""),
        ("statement error no .* meaning", ""),
        ("statement error E_OTHER", "fails with E_SEMANTIC, not E_OTHER"),
        ("statement error E_SEMANTIC other words", "is not in"),
        ("statement ok", "fails:"),
    ],
)
def test_errors_have_their_code_and_words(tmp_path: Path, head: str, words: str) -> None:
    error = SqlSemanticError("it has no good meaning", code="E_SEMANTIC")
    wrong = played(tmp_path, f"{head}\nSELECT\n", Told(error))
    assert (not wrong) if not words else words in wrong[0]


def test_an_answer_where_an_error_should_be(tmp_path: Path) -> None:
    (wrong,) = played(tmp_path, "statement error E_ROW\nSELECT\n", Told(ROWS))
    assert "is answered" in wrong


def test_directives_hold_for_what_follows(tmp_path: Path) -> None:
    backend = Told(ROWS)
    text = "statement ok\nA\n\ndatabase d\ntimezone Europe/Berlin\n# no\nstatement ok\nB\nC\n"
    assert played(tmp_path, text, backend) == []
    assert backend.asked == [("A", Context()), ("B\nC", Context("d", "Europe/Berlin"))]


@pytest.mark.parametrize(
    "text",
    [
        "statement maybe\nA",
        "statement ok",
        "statement error\nA",
        "query Q\nA\n----\n1",
        "query I\nA",
        "query II\nA\n----\n1",
        "query I somesort other\nA\n----\n1",
        "what is this",
        "fails some reason",
        "fails\nstatement ok\nA",
    ],
)
def test_what_the_form_does_not_have(tmp_path: Path, text: str) -> None:
    with pytest.raises(ScriptError, match=r"some\.test:\d"):
        played(tmp_path, text, Told(ROWS))


def test_values_as_texts() -> None:
    moment = datetime(2024, 7, 1, 12, 0, 0, 500_000, tzinfo=UTC)
    table = pa.table(
        {
            "f": pa.array([0.1], pa.float32()),
            "d": [Decimal("1.50")],
            "b": [True],
            "x": [b"\x01\xff"],
            "t": [" a  b\n\\"],
            "m": pa.array([moment], pa.timestamp("ms", "UTC")),
            "n": pa.array([-1], pa.timestamp("ns", "UTC")),
        }
    )
    assert "".join(values.letter(f.type) for f in table.schema) == "RDBXTMM"
    shown = ("0.1", "1.50", "true", "01ff", "␣a␣␣b\\n\\\\")
    assert values.texts(table, "UTC") == [
        (*shown, "2024-07-01 12:00:00.5", "1969-12-31 23:59:59.999999999")
    ]
    berlin = ("2024-07-01 14:00:00.5+02:00", "1970-01-01 00:59:59.999999999+01:00")
    assert values.texts(table, "Europe/Berlin") == [(*shown, *berlin)]


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        ("0.3", "0.30000000000000004", True),
        ("0.3", "0.3001", False),
        ("NULL", "0.0", False),
        ("nan", "nan", True),
        ("0", "0.0", True),
        ("0", "NULL", False),
    ],
)
def test_numbers_are_close(wanted: str, found: str, same: bool) -> None:
    assert values.same("R", (wanted,), (found,)) is same

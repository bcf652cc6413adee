"""What a SELECT with a window is refused for: in words about queries, never about streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import SqlError
from tests.unit.services.store.kit import PLAIN, STABLE
from tests.unit.services.store.test_query_run import Asking

#: query, code, column, words of the hint
REFUSED = [
    ("count(*) FROM plain INTERVAL(1s) GROUP BY v", "E_GROUP_BY", 50, "write PARTITION BY v"),
    ("sum(v) FROM plain INTERVAL(1s) HAVING v > 1", "E_UNSUPPORTED_QUERY", 46, "last(v)"),
    ("sum(v) FROM plain INTERVAL(1s) ORDER BY v", "E_UNSUPPORTED_QUERY", 48, "last(v)"),
    ("sum(v) FROM plain INTERVAL(1s) HAVING summ(v)", "E_UNKNOWN_FUNCTION", 46, "did you mean sum"),
    ("sum(v) FROM plain INTERVAL(1s) HAVING min(w)", "E_TYPE", 46, "compare it"),
    (
        "sum(v) FROM plain WHERE v > (SELECT max(v) FROM plain) INTERVAL(1s)",
        "E_UNSUPPORTED_QUERY",
        36,
        "put the window into a subquery",
    ),
    ("top(v, 1) FROM plain INTERVAL(1s)", "E_FORBIDDEN_FUNC", 8, ""),
    ("rand() FROM plain INTERVAL(1s)", "E_FORBIDDEN_FUNC", 8, "crc32"),
    ("v FROM plain INTERVAL(1s)", "E_UNSUPPORTED_QUERY", 8, "such as last(v)"),
    ("* FROM plain INTERVAL(1s)", "E_UNSUPPORTED_QUERY", 8, "name aggregates"),
    ("v, count(*) FROM plain INTERVAL(1s)", "E_UNSUPPORTED_QUERY", 8, "such as last(v)"),
    ("sum(vv) FROM plain INTERVAL(1s)", "E_UNKNOWN_COLUMN", 12, "did you mean v?"),
    ("summ(v) FROM plain INTERVAL(1s)", "E_UNKNOWN_FUNCTION", 8, "did you mean sum()?"),
    ("sum(w) FROM plain INTERVAL(1s)", "E_TYPE", 12, "CAST"),
    ("sum(sum(v)) FROM plain INTERVAL(1s)", "E_AGGREGATE_HERE", 12, "beside a window"),
    ("sum(x.v) FROM plain INTERVAL(1s)", "E_UNKNOWN_COLUMN", 12, "FROM has plain"),
    ("sum(v) FROM plain WHERE w INTERVAL(1s)", "E_TYPE", 32, "compare it"),
    ("sum(v) FROM nope INTERVAL(1s)", "E_TABLE_NOT_EXIST", 20, "SHOW TABLES"),
    ("sum(v) FROM plain INTERVAL(1a)", "E_INTERVAL_TOO_SMALL", 35, "write 10a"),
    ("sum(v) FROM plain INTERVAL(1s, 2s)", "E_OFFSET_GE_INTERVAL", 39, "below 1s"),
    ("sum(v) FROM plain INTERVAL(1s, 1n)", "E_OFFSET_UNIT", 39, "months"),
    ("sum(v) FROM plain INTERVAL(1s) SLIDING(2s)", "E_SLIDING_GT_INTERVAL", 47, "1s or less"),
    ("sum(v) FROM plain INTERVAL(1d) SLIDING(1a)", "E_SLIDING_TOO_SMALL", 47, "longer"),
    ("sum(v) FROM plain INTERVAL(40d) SLIDING(1n)", "E_SLIDING_UNIT", 48, "for both"),
    ("sum(v) FROM plain INTERVAL(10500u)", "E_INTERVAL_PRECISION", 35, "coarser"),
    ("sum(v) FROM plain SESSION(v, 1s)", "E_SESSION_COLUMN", 34, "SESSION(ts, 1s)"),
    ("sum(v) FROM plain SESSION(ts, 1n)", "E_SESSION_GAP", 38, "fixed time"),
    ("sum(v) FROM plain STATE_WINDOW(ts)", "E_STATE_TYPE", 39, "CASE WHEN"),
    (
        "sum(v) FROM meters PARTITION BY tbname STATE_WINDOW(g)",
        "E_STATE_COLUMN",
        60,
        "column that changes",
    ),
    ("sum(v) FROM meters STATE_WINDOW(v)", "E_STATE_NEEDS_TBNAME", 27, "PARTITION BY tbname"),
    ("sum(v) FROM meters COUNT_WINDOW(2)", "E_COUNT_NEEDS_TBNAME", 27, "PARTITION BY tbname"),
    (
        "sum(v) FROM meters EVENT_WINDOW START WITH v > 1 END WITH v < 1",
        "E_EVENT_NEEDS_TBNAME",
        27,
        "PARTITION BY tbname",
    ),
    (
        "sum(v) FROM plain EVENT_WINDOW START WITH w END WITH v < 1",
        "E_EVENT_CONDITION",
        50,
        "comparison",
    ),
    ("sum(v) FROM plain COUNT_WINDOW(1)", "E_COUNT_SIZE", 39, "write 2"),
    ("sum(v) FROM plain COUNT_WINDOW(3, 4)", "E_COUNT_SLIDING", 42, "1 to 3"),
    ("sum(v) FROM plain SESSION(ts, 1s) FILL(NULL)", "E_FILL_WINDOW", 42, "leave FILL out"),
    ("sum(v) FROM plain INTERVAL(1s) FILL(VALUE, 1, 2)", "E_FILL_VALUES", 39, "one per column"),
    ("span(v) FROM plain INTERVAL(1s) FILL(PREV)", "E_UNSUPPORTED_QUERY", 40, "leave FILL out"),
    ("sum(v) AS a, max(v) AS a FROM plain INTERVAL(1s)", "E_DUPLICATE_COLUMN", 21, "another name"),
    ("sum(v) AS tbname FROM plain INTERVAL(1s)", "E_RESERVED_NAME", 8, "other_name"),
    (f"sum(v) AS {'a' * 65} FROM plain INTERVAL(1s)", "E_NAME_LENGTH", 8, "shorter"),
    ("sum(_wstart) FROM plain INTERVAL(1s)", "E_UNSUPPORTED_QUERY", 12, "take it out"),
    ("sum(v) FROM meters PARTITION BY zz INTERVAL(1s)", "E_UNKNOWN_COLUMN", 40, "known here: ts"),
]


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    made = Asking(Path(tmp_path_factory.mktemp("store")))
    made.put(PLAIN, ("plain", 1_000, 1, "a"))
    made.put(STABLE, ("d1", 1_000, 10, "x", 1))
    return made


@pytest.mark.parametrize(
    ("query", "code", "column", "hint"), REFUSED, ids=[f"{r[1]}-{r[0][:40]}" for r in REFUSED]
)
def test_a_window_query_is_refused_as_a_query(
    asking: Asking, query: str, code: str, column: int, hint: str
) -> None:
    with pytest.raises(SqlError) as caught:
        asking.rows(f"SELECT {query}")
    error = caught.value
    assert (error.code, error.line, error.column) == (code, 1, column)
    assert hint in error.hint
    words = f"{error.message} {error.detail} {error.hint}"
    assert "stream" not in words.lower()
    assert "result table" not in words
    assert not error.message.startswith(("AS SELECT", "INTO", "TAGS", "CREATE"))
    assert "^" in error.snippet

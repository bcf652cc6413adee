"""CASE and CAST."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from penstock.sql.compile import comparison, conversion, leaves
from tests.unit.sql.compiling import evaluate
from tests.unit.sql.reading import refused

N = None
VALUES: list[tuple[str, str, list[Any]]] = [
    ("CASE WHEN o THEN 1 ELSE 2 END", "INT", [1, 2, 2]),
    ("CASE WHEN o THEN 1 END", "INT", [1, N, N]),
    ("CASE WHEN a > 5 THEN 1 WHEN a > 0 THEN 2 WHEN o THEN 3 ELSE 4 END", "INT", [2, 4, 4]),
    ("CASE a WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END", "VARCHAR(4)", "one many many"),
    ("CASE WHEN o THEN a ELSE d END", "DOUBLE", [1.0, N, -0.5]),
    ("CASE WHEN o THEN a ELSE s END", "VARCHAR(32)", ["1", N, "b"]),
    ("CASE WHEN o THEN n ELSE s END", "NCHAR(10)", ["ä", N, "b"]),
    ("CASE WHEN o THEN NULL ELSE u END", "BIGINT UNSIGNED", [N, N, 3]),
    ("CASE WHEN o THEN NULL END", "NULL", [N, N, N]),
    ("CASE WHEN NULL THEN 1 ELSE 2 END", "INT", [2, 2, 2]),
    ("CAST(a AS BIGINT)", "BIGINT", [1, N, -2]),
    ("CAST(a AS BOOL)", "BOOL", [True, N, True]),
    ("CAST(d AS INT)", "INT", [1, N, 0]),
    ("CAST(a AS TINYINT UNSIGNED)", "TINYINT UNSIGNED", [1, N, 254]),
    ("CAST(a AS VARCHAR(1))", "VARCHAR(1)", ["1", N, "-"]),
    ("CAST(a AS VARCHAR)", "VARCHAR(64)", ["1", N, "-2"]),
    ("CAST(s AS NCHAR)", "NCHAR(10)", ["1", N, "b"]),
    ("CAST(s AS DOUBLE)", "DOUBLE", [1.0, N, 0.0]),
    ("CAST(d AS DECIMAL(5,1))", "DECIMAL(5,1)", [Decimal("1.5"), N, Decimal("-0.5")]),
    ("CAST(ts AS BIGINT)", "BIGINT", [1_000, N, 3_000]),
    ("CAST('1970-01-01 00:00:01' AS TIMESTAMP)", "TIMESTAMP", [1_000] * 3),
    ("CAST(s AS VARBINARY(4))", "VARBINARY(4)", [b"1", N, b"b"]),
    (r"CAST('\\x00FF' AS VARBINARY)", "VARBINARY(2)", [b"\0\xff"] * 3),
    (r"CAST('\\x00ff' AS VARBINARY(1))", "VARBINARY(1)", [b"\0"] * 3),
    (r"CAST('' AS VARBINARY)", "VARBINARY(1)", [b""] * 3),
    (r"CAST(s AS VARBINARY(4)) = CAST('\\x62' AS VARBINARY)", "BOOL", [False, N, True]),
    ("CAST(NULL AS INT)", "INT", [N, N, N]),
    ("TIMESTAMP '1970-01-01T00:00:02Z'", "TIMESTAMP", [2_000] * 3),
]


@pytest.mark.parametrize(("text", "kind", "values"), VALUES, ids=[v[0] for v in VALUES])
def test_a_value_is_brought_to_one_type(text: str, kind: str, values: Any) -> None:
    wanted = values.split() if isinstance(values, str) else values
    assert evaluate(text, leaves, comparison, conversion) == (kind, wanted)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("CASE WHEN o THEN v ELSE a END", 1, "CASE cannot choose between VARBINARY(4) and INT"),
        ("CASE WHEN o THEN ts ELSE d END", 1, "CASE cannot choose between TIMESTAMP and DOUBLE"),
        ("CASE WHEN s THEN 1 END", 11, "a condition is needed here, not VARCHAR(10)"),
        ("CASE a WHEN 'x' THEN 1 END", None, "comparison: INT and VARCHAR(1) do not fit"),
        ("CAST(a AS JSON)", 1, "CAST: INT and JSON do not fit"),
        ("CAST(j AS VARBINARY(4))", 1, "CAST: JSON and VARBINARY(4) do not fit"),
        ("CAST(a AS VARBINARY(4))", 1, "CAST: INT and VARBINARY(4) do not fit"),
        ("CAST(1n AS BIGINT)", 1, "1n has no fixed length"),
    ],
)
def test_what_has_no_common_type_is_refused(text: str, column: int | None, message: str) -> None:
    found = refused(lambda: evaluate(text, leaves, comparison, conversion))
    assert (found[0], found[3]) == ("E_TYPE", message)
    assert column is None or found[1:3] == (1, column)

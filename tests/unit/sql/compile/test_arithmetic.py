"""Arithmetic over numbers, times and durations, and operators on bits."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from penstock.sql.compile import arithmetic, leaves
from penstock.sql.compile.expression import parse_expression
from tests.unit.sql.compiling import compiler, evaluate
from tests.unit.sql.reading import refused

N = None
MONTH = 31 * 86_400_000
VALUES: list[tuple[str, str, list[Any]]] = [
    ("a + 1", "DOUBLE", [2.0, N, -1.0]),
    ("a - d", "DOUBLE", [-0.5, N, -1.5]),
    ("a * d", "DOUBLE", [1.5, N, 1.0]),
    ("d / 2", "DOUBLE", [0.75, N, -0.25]),
    ("d / 0", "DOUBLE", [N, N, N]),
    ("d % 1", "DOUBLE", [0.5, N, -0.5]),
    ("a % 0", "DOUBLE", [N, N, N]),
    ("m + 0", "DOUBLE", [1.25, N, -2.0]),
    ("o + o", "DOUBLE", [2.0, N, 0.0]),
    ("a + NULL", "DOUBLE", [N, N, N]),
    ("a - 1 - 1", "DOUBLE", [-1.0, N, -4.0]),
    ("a - (1 - 1)", "DOUBLE", [1.0, N, -2.0]),
    ("d * 1e308 * 10 / 1e308", "DOUBLE", [N, N, N]),
    ("-a", "DOUBLE", [-1.0, N, 2.0]),
    ("-5", "INT", [-5] * 3),
    ("-(2147483648)", "INT", [-(2**31)] * 3),
    ("-9223372036854775808", "BIGINT", [-(2**63)] * 3),
    ("- -5", "DOUBLE", [5.0] * 3),
    # bits
    ("a & 3", "BIGINT", [1, N, 2]),
    ("a | 4", "BIGINT", [5, N, -2]),
    ("u & 1", "BIGINT", [1, N, 1]),
    ("a & NULL", "BIGINT", [N, N, N]),
    ("a & 1 | 2", "BIGINT", [3, N, 2]),
    # times
    ("ts + 1s", "TIMESTAMP", [2_000, N, 4_000]),
    ("1s + ts", "TIMESTAMP", [2_000, N, 4_000]),
    ("ts - 1s", "TIMESTAMP", [0, N, 2_000]),
    ("ts + 1n", "TIMESTAMP", [1_000 + MONTH, N, 3_000 + MONTH]),
    ("ts + 5", "TIMESTAMP", [1_005, N, 3_005]),
    ("ts - a", "TIMESTAMP", [999, N, 3_002]),
    ("ts + 0.5", "DOUBLE", [1_000.5, N, 3_000.5]),
    ("ts + NULL", "TIMESTAMP", [N, N, N]),
    ("ts - ts", "BIGINT", [0, N, 0]),
    ("ts * 2", "DOUBLE", [2_000.0, N, 6_000.0]),
    ("1h + 1m", "BIGINT", [3_660_000] * 3),
    ("1h - 1m", "BIGINT", [3_540_000] * 3),
    ("2 * 1s", "DOUBLE", [2_000.0] * 3),
]


@pytest.mark.parametrize(("text", "kind", "values"), VALUES, ids=[v[0] for v in VALUES])
def test_an_operator_has_its_type_and_values(text: str, kind: str, values: list[Any]) -> None:
    assert evaluate(text, leaves, arithmetic) == (kind, values)


def test_a_duration_has_ticks_of_the_precision() -> None:
    assert evaluate("1s + 1a", leaves, arithmetic, precision="us")[1] == [1_001_000] * 3


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("a + (ts + ts)", 6, "two times cannot be added"),
        ("1 - ts", 1, "-: INT and TIMESTAMP do not fit"),
        ("ts + s", 1, "+: TIMESTAMP and VARCHAR(10) do not fit"),
        ("ts - s", 1, "-: TIMESTAMP and VARCHAR(10) do not fit"),
        ("1 + s", 5, "a number is needed here, not VARCHAR(10)"),
        ("a * 1n", 5, "1n has no fixed length"),
        ("1n + 1d", 1, "1n has no fixed length"),
        ("a + -1s", 5, "a duration has no sign"),
        ("s & 1", 1, "bits of VARCHAR(10) cannot be combined with BIGINT"),
        ("1 | ts", 5, "bits of TIMESTAMP cannot be combined with BIGINT"),
    ],
)
def test_what_cannot_be_computed_is_refused(text: str, column: int, message: str) -> None:
    assert refused(lambda: evaluate(text, leaves, arithmetic)) == ("E_TYPE", 1, column, message)


def test_a_row_is_divided_alike_alone_and_among_others() -> None:
    values = [i * 1.1 for i in range(1, 50)]
    made = compiler(leaves, arithmetic).compile(parse_expression("d / 3 / 7"))
    frame = pl.DataFrame({"d": values})
    assert frame.select(x=made.expr)["x"].to_list() == [v / 3 / 7 for v in values]
    assert [frame[i : i + 1].select(x=made.expr).item() for i in range(9)] == [
        v / 3 / 7 for v in values[:9]
    ]


@pytest.mark.parametrize("operator", [" + ", " * ", " - "])
def test_hundreds_of_operators_need_no_deep_stack(operator: str) -> None:
    found = evaluate(operator.join(["a"] * 150), leaves, arithmetic)[1]
    assert found[:2] == [{" + ": 150.0, " * ": 1.0, " - ": -148.0}[operator], None]

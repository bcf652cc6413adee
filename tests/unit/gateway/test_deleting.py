from __future__ import annotations

from datetime import UTC

import pytest

from gateway.deleting import DeletedRange, bounds
from penstock.errors import SqlSemanticError
from penstock.sql import parse_one
from penstock.sql.statements import Delete
from tests.unit.gateway.test_rows import METERS

LOW = -(2**63)
HIGH = 2**63 - 1


def meaning(where: str) -> DeletedRange:
    statement = parse_one(f"DELETE FROM m {where}")
    assert isinstance(statement, Delete)
    return bounds(statement, METERS, UTC, 1000)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("", DeletedRange(None)),
        ("WHERE ts >= 10 AND ts < 20", DeletedRange(None, 10, 19)),
        ("WHERE ts > 10 AND 20 >= ts", DeletedRange(None, 11, 20)),
        ("WHERE ts BETWEEN 5 AND 7", DeletedRange(None, 5, 7)),
        ("WHERE ts = -5", DeletedRange(None, -5, -5)),
        ("WHERE ts < TIMESTAMP '1970-01-01 00:00:01'", DeletedRange(None, LOW, 999)),
        ("WHERE ts < now - 1s", DeletedRange(None, LOW, -1)),
        ("WHERE (ts <= '1970-01-01 00:00:01') AND tbname = 'd1'", DeletedRange(("d1",), LOW, 1000)),
        ("WHERE tbname IN ('a', 'b', 'a') AND tbname = 'b'", DeletedRange(("b",), LOW, HIGH)),
        ("WHERE tbname = 'a' AND tbname = 'b'", DeletedRange((), LOW, HIGH)),
        ("WHERE _rowts > 1", DeletedRange(None, 2, HIGH)),
    ],
)
def test_ranges(where: str, expected: DeletedRange) -> None:
    assert meaning(where) == expected


@pytest.mark.parametrize(
    "where",
    [
        "WHERE v > 1",
        "WHERE ts > 1 OR ts < 0",
        "WHERE ts > v",
        "WHERE ts <> 1",
        "WHERE site = 'a'",
        "WHERE tbname LIKE 'd%'",
    ],
)
def test_what_a_delete_cannot_mean(where: str) -> None:
    with pytest.raises(SqlSemanticError) as caught:
        meaning(where)
    assert caught.value.line == 1

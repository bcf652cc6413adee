"""SUBTABLE: names of child tables, made of partition keys."""

from __future__ import annotations

import pytest

from penstock.sql.planning.target.subtable import plan_subtable
from tests.unit.sql.planning.binding import refused_at, request, statement

TAIL = "count(*) FROM met PARTITION BY {keys} INTERVAL(1s)"


@pytest.mark.parametrize(
    ("clause", "keys", "wanted"),
    [
        ("", "tb", None),
        ("SUBTABLE(tb)", "tb", "_k0"),
        ("SUBTABLE(concat('x_', TB))", "ta, tb", "concat('x_', _k1)"),
        ("SUBTABLE(concat(k, tbname))", "tbname, upper(tb) AS k", "concat(_k1, _k0)"),
        ("SUBTABLE(upper(tb))", "upper(tb)", "_k0"),
        (
            "SUBTABLE(CASE WHEN ta > 1 THEN 'a' ELSE tb END)",
            "ta, tb",
            "CASE WHEN _k0 > 1 THEN 'a' ELSE _k1 END",
        ),
        ("SUBTABLE('fixed')", "ta", "'fixed'"),
    ],
)
def test_a_name_is_made_of_keys(clause: str, keys: str, wanted: str | None) -> None:
    found = plan_subtable(request(statement(TAIL.format(keys=keys), f"INTO o {clause}")))
    assert found == wanted


@pytest.mark.parametrize(
    ("clause", "keys", "code", "at"),
    [
        ("SUBTABLE(concat('x', tb))", "ta", "E_SUBTABLE_COLUMN", "tb)) AS SELE"),
        ("SUBTABLE(s)", "ta, tb", "E_SUBTABLE_COLUMN", "s) AS SELECT"),
        ("SUBTABLE(ta)", "ta", "E_SUBTABLE_TYPE", "ta) AS SELEC"),
        ("SUBTABLE(concat(ta, 'x'))", "ta", "E_TYPE", "ta, 'x')) AS"),
    ],
)
def test_what_is_no_name_is_refused(clause: str, keys: str, code: str, at: str) -> None:
    made = statement(TAIL.format(keys=keys), f"INTO o {clause}")
    assert refused_at(made, lambda: plan_subtable(request(made))) == (code, at)

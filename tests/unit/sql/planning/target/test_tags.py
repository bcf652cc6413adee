"""Tags of a result: given by TAGS, or the partition keys and `group_id`."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sql.plan import Column
from penstock.sql.planning.target.tags import (
    GROUP_ID,
    MAX_TAGS,
    RESERVED,
    TagOrigin,
    match_tags,
    plan_existing_tags,
    plan_new_tags,
)
from penstock.sql.planning.view import TableDef
from penstock.types import ColumnType
from tests.unit.sql.planning.binding import INT, refused_at, request, statement

TEXT = ColumnType("VARCHAR", length=20)


def made_of(keys: str, clause: str = "") -> Any:
    partition = f"PARTITION BY {keys}" if keys else ""
    return statement(f"count(*) FROM met {partition} INTERVAL(1s)", f"INTO o {clause}")


def new(
    keys: str, clause: str = "", columns: tuple[tuple[str, str | None], ...] = ()
) -> tuple[list[str], list[TagOrigin]]:
    tags, origins = plan_new_tags(request(made_of(keys, clause)), columns)
    return [t.name for t in tags], list(origins)


@pytest.mark.parametrize(
    ("keys", "columns", "names", "origins"),
    [
        ("", (), ["group_id"], ["group_id"]),
        ("ta, tb", (), ["ta", "tb", "group_id"], [0, 1, "group_id"]),
        ("tbname", (), ["tag_tbname", "group_id"], [0, "group_id"]),
        ("ta AS k", (), ["k", "group_id"], [0, "group_id"]),
        (f"ta AS `{'é' * 40}`", (), ["é" * 32, "group_id"], [0, "group_id"]),
        # a key that is a result column already
        ("ta, tb", (("ta", "_k0"),), ["tb", "group_id"], [1, "group_id"]),
        ("ta", (("TA", "ta"),), ["group_id"], ["group_id"]),
        # a name that means something else
        ("ta", (("ta", "_a0"),), ["tag_ta", "group_id"], [0, "group_id"]),
        ("ta", (("ta", "_a0"), ("tag_ta", "_a1")), ["tag1_ta", "group_id"], [0, "group_id"]),
        ("ta AS _late", (), ["tag__late", "group_id"], [0, "group_id"]),
        ("ta AS group_id", (), ["tag_group_id", "group_id"], [0, "group_id"]),
        # rows that pass through bring the group of another stream
        ("", (("group_id", "group_id"),), ["tag_group_id"], ["group_id"]),
    ],
)
def test_keys_are_tags_under_their_own_names(
    keys: str, columns: Any, names: list[str], origins: list[TagOrigin]
) -> None:
    assert new(keys, columns=columns) == (names, origins)


def test_more_keys_than_tags_are_no_fault() -> None:
    keys = ", ".join(f"ta + {i} AS k{i}" for i in range(MAX_TAGS + 5))
    names, origins = new(keys)
    assert len(names) == MAX_TAGS
    assert names[-1] == "group_id" and origins[-2] == MAX_TAGS - 2


def test_no_tag_has_a_name_that_rows_carry() -> None:
    for name in RESERVED:
        names, _ = new(f"ta AS `{name}`")
        assert names == [f"tag_{name}", "group_id"]


@pytest.mark.parametrize(
    ("keys", "clause", "names", "origins"),
    [
        ("ta, tb", "TAGS (tb VARCHAR(9), ta INT)", ["tb", "ta"], [1, 0]),
        ("upper(tb) AS k", "TAGS (K VARCHAR(9))", ["K"], [0]),
        ("", "TAGS (x INT)", ["x"], [None]),
    ],
)
def test_tags_of_the_clause_are_filled_by_the_keys_of_their_names(
    keys: str, clause: str, names: list[str], origins: list[TagOrigin]
) -> None:
    assert new(keys, clause) == (names, origins)


@pytest.mark.parametrize(
    ("keys", "clause", "code", "at"),
    [
        ("ta", "TAGS (ta)", "E_TABLE_NOT_EXIST", "o TAGS (ta) "),
        ("ta", "TAGS (x INT)", "E_TAG_NOT_IN_PARTITION", "x INT) AS SE"),
        ("ta, tb", "TAGS (ta JSON, tb INT)", "E_TARGET_TAGS", "ta JSON, tb "),
        (f"ta AS {'x' * 65}", f"TAGS ({'x' * 65} INT)", "E_NAME_LENGTH", "x" * 12),
    ],
)
def test_a_clause_that_fits_no_new_table_is_refused(
    keys: str, clause: str, code: str, at: str
) -> None:
    made = made_of(keys, clause)
    assert refused_at(made, lambda: plan_new_tags(request(made), ())) == (code, at)


TARGET = TableDef(
    9,
    "db",
    "o",
    "stable",
    (Column("ts", ColumnType("TIMESTAMP")), Column("n", INT)),
    (Column("Ta", INT), Column("x", TEXT)),
)


def existing(keys: str, clause: str = "", tags: Any = TARGET.tags, **more: Any) -> list[TagOrigin]:
    table = dataclasses.replace(TARGET, tags=tags, **more)
    return list(plan_existing_tags(request(made_of(keys, clause)), table, ()))


@pytest.mark.parametrize(
    ("keys", "clause", "more", "origins"),
    [
        ("ta, tb", "", {}, [0, 1]),
        ("", "", {}, [None, None]),
        ("ta, tb", "TAGS (ta)", {}, [0, None]),
        ("tb AS x, ta", "TAGS (X, ta)", {}, [1, 0]),
        ("ta, tb", "", {"tags": (Column("g", GROUP_ID.type),)}, ["group_id"]),
        # the result of another stream is filled by the names of its tags
        (
            "tb, ta",
            "",
            {"tags": (Column("ta", INT), Column("old", INT), GROUP_ID), "result_of": 5},
            [1, None, "group_id"],
        ),
    ],
)
def test_tags_of_a_table_that_exists_are_filled(
    keys: str, clause: str, more: dict[str, Any], origins: list[TagOrigin]
) -> None:
    assert existing(keys, clause, **more) == origins


@pytest.mark.parametrize(
    ("keys", "clause", "code", "at"),
    [
        ("ta", "", "E_TARGET_TAGS", "o  AS SELECT"),
        ("ta, tb", "TAGS (ta, ta)", "E_TARGET_TAGS", "ta) AS SELEC"),
        ("ta, tb", "TAGS (nosuch)", "E_TARGET_TAGS", "nosuch) AS S"),
        ("ta, tb", "TAGS (x)", "E_TAG_NOT_IN_PARTITION", "x) AS SELECT"),
    ],
)
def test_tags_that_do_not_fit_a_table_are_refused(
    keys: str, clause: str, code: str, at: str
) -> None:
    made = made_of(keys, clause)
    call = lambda: plan_existing_tags(request(made), TARGET, ())  # noqa: E731
    assert refused_at(made, call) == (code, at)


def test_tags_are_matched_by_name() -> None:
    tags = (Column("B", INT), Column("gone", INT), Column("a", INT))
    automatic = (Column("a", INT), Column("b", INT), GROUP_ID)
    assert match_tags(tags, automatic, (0, 1, "group_id")) == (1, None, 0)

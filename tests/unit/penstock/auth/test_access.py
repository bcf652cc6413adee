from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from penstock.auth.access import Access, visible
from penstock.catalog import changes, principals
from penstock.catalog.model import Database, Grant, Role, Table, User
from penstock.catalog.view import Catalog
from penstock.errors import AuthError
from tests.unit.penstock.catalog.builders import NOTE, PLACE, TIME, VOLTAGE, apply, ids, plan

NEW = ids()
CATALOG = Catalog()
for name in ("power", "other"):
    apply(CATALOG, changes.create_database(CATALOG, NEW, name))
    apply(CATALOG, changes.create_table(CATALOG, NEW, name, "meters", (TIME, VOLTAGE), (PLACE,)))
    apply(CATALOG, changes.create_table(CATALOG, NEW, name, "notes", (TIME, NOTE)))
STREAM_ID = NEW()
apply(
    CATALOG,
    changes.create_table(
        CATALOG, NEW, "power", "highs", (TIME, VOLTAGE), (PLACE,), result_of=STREAM_ID
    ),
)
apply(
    CATALOG,
    changes.create_stream(
        CATALOG, plan(CATALOG, STREAM_ID, "highest", "meters", "highs"), created=0
    ),
)


def found(name: str) -> Any:
    database, _, table = name.partition(".")
    return (
        CATALOG.database(database)
        if not table
        else CATALOG.table(database, table) or CATALOG.stream(database, table)
    )


def user(*grants: tuple[str, str], roles: tuple[Role, ...] = (), enabled: bool = True) -> Access:
    """What Ann may do with these grants (right, object; "" is everything)."""
    catalog = copy.deepcopy(CATALOG)
    for role in roles:
        catalog.put(role)
    made = tuple(Grant(right, found(name).id if name else 0) for right, name in grants)  # type: ignore[arg-type]
    catalog.put(User(9001, "ann", "", enabled, tuple(r.id for r in roles), made))
    return Access(lambda: catalog, "root")


def test_root_may_everything_and_nobody_nothing() -> None:
    access = user()
    assert access.may("root", "ADMIN", None)
    for name in ("ann", "bob", ""):
        assert not access.may(name, "READ", found("power.meters")) and not access.sees(
            name, found("power")
        )


@pytest.mark.parametrize(
    ("grant", "may", "may_not"),
    [
        (
            ("READ", "power.meters"),
            ["power.meters"],
            ["power.notes", "power", "other.meters", "power.highest", "power.highs"],
        ),
        (
            ("READ", "power"),
            ["power", "power.meters", "power.notes", "power.highest", "power.highs"],
            ["other", "other.meters"],
        ),
        (("READ", ""), ["power", "other", "other.meters", "power.highest"], []),
        (("READ", "power.highest"), ["power.highest", "power.highs"], ["power.meters", "power"]),
        (("WRITE", "power"), [], ["power.meters"]),
    ],
)
def test_a_right_holds_for_what_is_inside(
    grant: tuple[str, str], may: list[str], may_not: list[str]
) -> None:
    access = user(grant)
    assert {n for n in (*may, *may_not) if access.may("ann", "READ", found(n))} == set(may)
    assert access.may("ann", "READ", None) == (grant[1] == "" and grant[0] == "READ")


def test_a_refusal_names_right_and_object() -> None:
    access = user(("READ", "power.meters"))
    for target, words in [
        ("power.meters", "WRITE on table power.meters"),
        ("power", "WRITE on database power"),
    ]:
        with pytest.raises(AuthError, match=words) as refused:
            access.require("ann", "WRITE", found(target))
        assert refused.value.code == "E_FORBIDDEN" and "GRANT WRITE" in refused.value.hint
    with pytest.raises(AuthError, match=r"ADMIN on everything \(\*\.\*\)"):
        access.require("ann", "ADMIN", None)


def test_what_does_not_exist_is_told_to_those_who_could_know() -> None:
    access = user(("READ", "power"))
    access.require_named("ann", "READ", "power", "nothing")
    for database in ("other", "nowhere"):
        with pytest.raises(AuthError, match=f"READ on {database}.nothing"):
            access.require_named("ann", "READ", database, "nothing")


def test_roles_and_disabled_users() -> None:
    role = Role(9000, "readers", (Grant("READ", found("power").id),))
    assert user(roles=(role,)).may("ann", "READ", found("power.meters"))
    assert not user(roles=(role,), enabled=False).may("ann", "READ", found("power.meters"))


def test_a_change_counts_at_once() -> None:
    catalog = Catalog([Database(1, "d"), Table(2, "d", "t", "plain", "in.d", 1, "ms", ())])
    access = Access(lambda: catalog, "root")
    ann = User(3, "ann", "", grants=(Grant("WRITE", 2),))
    table = catalog.table("d", "t")
    catalog.put(ann)
    assert access.may("ann", "WRITE", table)
    catalog.put(dataclasses.replace(ann, grants=()))
    assert not access.may("ann", "WRITE", table)
    role = Role(4, "r", (Grant("WRITE", 1),))
    catalog.put(role)
    catalog.put(dataclasses.replace(ann, grants=(), roles=(4,)))
    assert access.may("ann", "WRITE", table)
    catalog.put(dataclasses.replace(role, grants=()))
    assert not access.may("ann", "WRITE", table)
    catalog.put(ann)
    catalog.remove(3)
    assert not access.may("ann", "WRITE", table)


def test_a_table_made_again_under_its_name_is_another() -> None:
    access = user(("READ", "power.notes"))
    assert not access.may("ann", "READ", dataclasses.replace(found("power.notes"), id=9999))


def test_lists_have_what_one_may_see() -> None:
    access = user(("WRITE", "power.notes"), ("READ", "power.highest"), ("FUNCTION", ""))
    seen = visible(CATALOG, access, "ann")
    assert [d.name for d in seen.databases()] == ["power"]
    assert [t.name for t in seen.tables()] == ["highs", "notes"]
    assert [s.name for s in seen.streams()] == ["highest"]
    assert seen.table("power", "meters") is None and seen.database("other") is None
    assert (
        seen.schema(found("power.meters").schema_id) is None
        and seen.schema(found("power.notes").schema_id) is not None
    )
    assert visible(CATALOG, access, "root") is CATALOG


def test_who_makes_something_owns_it() -> None:
    catalog = Catalog([User(3, "ann", "")])
    change = changes.create_database(catalog, lambda: 10, "mine")
    for entry in (*change.puts, *principals.owner(catalog, change.puts, "ann")):
        catalog.put(entry)
    access = Access(lambda: catalog, "root")
    assert all(
        access.may("ann", right, catalog.database("mine"))
        for right in ("READ", "WRITE", "CREATE", "ALTER", "DROP")
    )  # type: ignore[arg-type]
    assert (
        principals.owner(catalog, change.puts, "ann")
        == principals.owner(catalog, change.puts, "root")
        == ()
    )


@pytest.mark.parametrize("grant", [None, ("READ", "other"), ("READ", "power.notes")])
def test_who_may_not_see_a_thing_gets_the_answer_for_what_does_not_exist(
    grant: tuple[str, str] | None,
) -> None:
    access = user(*([grant] if grant else []))
    for name in ("power.meters", "power.highest", "power.highs"):
        for spelling in (name, name.upper()):
            database, _, plain = spelling.partition(".")
            with pytest.raises(AuthError) as there:
                access.require("ann", "READ", found(name), spelling)
            with pytest.raises(AuthError) as missing:
                access.require_named("ann", "READ", database, "nothing_here")
            assert str(there.value).replace(plain.lower(), "?") == str(missing.value).replace(
                "nothing_here", "?"
            )
            assert there.value.hint == missing.value.hint

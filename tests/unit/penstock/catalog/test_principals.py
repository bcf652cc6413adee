from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.catalog import changes, entries, principals
from penstock.catalog.changes import Change
from penstock.catalog.model import Grant, User
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.records import decode
from tests.unit.penstock.catalog.builders import PLACE, TIME, VOLTAGE, apply, ids

ROOT = "root"


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    new = ids()
    apply(made, changes.create_database(made, new, "power"))
    apply(made, changes.create_table(made, new, "power", "meters", (TIME, VOLTAGE), (PLACE,)))
    apply(made, principals.create_user(made, new, "ann", "hash", root=ROOT, created=5))
    apply(made, principals.create_role(made, new, "readers", root=ROOT))
    return made


def ann(catalog: Catalog) -> User:
    found = catalog.user("ANN")
    assert found is not None
    return found


def test_grants_add_up_and_are_taken_away(catalog: Catalog) -> None:
    table = catalog.table("power", "meters")
    database = catalog.database("power")
    assert table is not None and database is not None
    apply(catalog, principals.grant(catalog, ["read", "WRITE"], table, "ann", root=ROOT))
    apply(catalog, principals.grant(catalog, ["READ"], table, "ann", root=ROOT))
    apply(catalog, principals.grant(catalog, ["CREATE"], database, "ann", root=ROOT))
    assert ann(catalog).grants == (
        Grant("CREATE", database.id),
        Grant("READ", table.id),
        Grant("WRITE", table.id),
    )
    apply(catalog, principals.revoke(catalog, ["WRITE"], table, "ann", root=ROOT))
    apply(catalog, principals.revoke(catalog, ["ALL"], database, "ann", root=ROOT))
    assert ann(catalog).grants == (Grant("READ", table.id),)


def test_all_is_what_the_object_can_have(catalog: Catalog) -> None:
    apply(
        catalog,
        principals.grant(catalog, ["ALL"], catalog.table("power", "meters"), "readers", root=ROOT),
    )
    apply(catalog, principals.grant(catalog, ["ALL"], None, "ann", root=ROOT))
    role = catalog.role("readers")
    assert role is not None and [g.right for g in role.grants] == ["READ", "WRITE", "ALTER", "DROP"]
    assert {g.right for g in ann(catalog).grants} == set(principals.RIGHTS)


def test_grants_on_what_was_dropped_go(catalog: Catalog) -> None:
    apply(
        catalog,
        principals.grant(catalog, ["READ"], catalog.table("power", "meters"), "ann", root=ROOT),
    )
    apply(catalog, changes.drop_table(catalog, "power", "meters"))
    apply(catalog, principals.grant(catalog, ["READ"], catalog.database("power"), "ann", root=ROOT))
    assert len(ann(catalog).grants) == 1


def test_roles_go_from_who_had_them(catalog: Catalog) -> None:
    apply(catalog, principals.give_role(catalog, "readers", "ann", root=ROOT))
    assert len(ann(catalog).roles) == 1
    apply(catalog, principals.drop_role(catalog, "readers"))
    assert ann(catalog).roles == () and catalog.role("readers") is None
    with pytest.raises(CatalogError):
        principals.take_role(catalog, "readers", "ann", root=ROOT)


def test_what_ends_tokens_is_counted(catalog: Catalog) -> None:
    apply(catalog, principals.alter_user(catalog, "ann", root=ROOT, password="new"))
    apply(catalog, principals.alter_user(catalog, "ann", root=ROOT, enabled=False))
    apply(catalog, principals.revoke_tokens(catalog, "ann", root=ROOT))
    assert (
        ann(catalog).password,
        ann(catalog).enabled,
        ann(catalog).generation,
        ann(catalog).created,
    ) == ("new", False, 3, 5)


def test_entries_come_back_from_the_log(catalog: Catalog) -> None:
    apply(catalog, principals.grant(catalog, ["READ"], None, "ann", root=ROOT))
    apply(catalog, principals.give_role(catalog, "readers", "ann", root=ROOT))
    for entry in (ann(catalog), catalog.role("readers")):
        assert entry is not None
        assert (
            entries.from_record(decode(entries.CatalogRecord, entries.to_value(entry, 1))) == entry
        )
    assert "hash" not in repr(ann(catalog))


RULES: list[tuple[str, Callable[[Catalog], Change]]] = [
    ("E_USER_EXISTS", lambda c: principals.create_user(c, ids(), "Ann", "h", root=ROOT, created=0)),
    (
        "E_USER_EXISTS",
        lambda c: principals.create_user(c, ids(), "ROOT", "h", root=ROOT, created=0),
    ),
    (
        "E_ROLE_EXISTS",
        lambda c: principals.create_user(c, ids(), "readers", "h", root=ROOT, created=0),
    ),
    ("E_USER_EXISTS", lambda c: principals.create_role(c, ids(), "ann", root=ROOT)),
    ("E_BAD_NAME", lambda c: principals.create_user(c, ids(), "a:b", "h", root=ROOT, created=0)),
    ("E_BAD_NAME", lambda c: principals.create_role(c, ids(), "", root=ROOT)),
    ("E_NO_USER", lambda c: principals.drop_user(c, "bob", root=ROOT)),
    ("E_NO_USER", lambda c: principals.grant(c, ["READ"], None, "bob", root=ROOT)),
    ("E_NO_ROLE", lambda c: principals.drop_role(c, "writers")),
    ("E_NO_ROLE", lambda c: principals.give_role(c, "writers", "ann", root=ROOT)),
    ("E_BAD_GRANT", lambda c: principals.drop_user(c, "root", root=ROOT)),
    ("E_BAD_GRANT", lambda c: principals.alter_user(c, "Root", root=ROOT, password="h")),
    ("E_BAD_GRANT", lambda c: principals.grant(c, ["READ"], None, "root", root=ROOT)),
    (
        "E_BAD_GRANT",
        lambda c: principals.grant(c, ["ADMIN"], c.database("power"), "ann", root=ROOT),
    ),
    (
        "E_BAD_GRANT",
        lambda c: principals.grant(c, ["CREATE"], c.table("power", "meters"), "ann", root=ROOT),
    ),
    ("E_BAD_GRANT", lambda c: principals.grant(c, ["FLY"], None, "ann", root=ROOT)),
]


@pytest.mark.parametrize(("code", "rule"), RULES)
def test_refusals(catalog: Catalog, code: str, rule: Callable[[Catalog], Change]) -> None:
    with pytest.raises(CatalogError) as refused:
        rule(catalog)
    assert refused.value.code == code


def test_if_exists_and_if_not_exists(catalog: Catalog) -> None:
    assert (
        principals.create_user(catalog, ids(), "ann", "h", root=ROOT, created=0, if_not_exists=True)
        == Change()
    )
    assert (
        principals.create_role(catalog, ids(), "readers", root=ROOT, if_not_exists=True) == Change()
    )
    assert (
        principals.drop_user(catalog, "bob", root=ROOT, if_exists=True)
        == principals.drop_role(catalog, "x", if_exists=True)
        == Change()
    )

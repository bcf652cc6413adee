from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from gateway.kafka_rights import KafkaRights, ours, rules_of
from penstock import names
from penstock.auth.access import Access
from penstock.auth.kafka_users import Rule
from penstock.catalog import changes, principals
from penstock.catalog.changes import Change
from penstock.catalog.view import Catalog
from penstock.errors import BusError
from tests.unit.penstock.catalog.builders import PLACE, TIME, VOLTAGE, apply, ids

ROOT = "root"
DATABASES = ("power", "power2", "water")


def rules(user: str, operation: str, *topics: tuple[str, bool]) -> set[Rule]:
    found = {
        Rule(user, o, "TOPIC", name, prefixed)
        for name, prefixed in topics
        for o in (operation, "DESCRIBE")
    }  # type: ignore[arg-type]
    groups = {Rule(user, "READ", "GROUP", user), Rule(user, "READ", "GROUP", f"{user}:", True)}
    return found | (groups if operation == "READ" else set())


def of_database(name: str) -> list[tuple[str, bool]]:
    return [(f"in.{name}", False), (f"in.{name}.", True), (f"in.{name}-g", True)]


EVERY = ("in.", True)
ROOTS = rules(ROOT, "READ", EVERY) | rules(ROOT, "WRITE", EVERY)


def catalog_with(*users: str) -> Catalog:
    made = Catalog()
    new = ids()
    for name in DATABASES:
        apply(made, changes.create_database(made, new, name))
        apply(made, changes.create_table(made, new, name, "meters", (TIME, VOLTAGE), (PLACE,)))
    for user in users:
        apply(made, principals.create_user(made, new, user, "hash", root=ROOT, created=5))
    apply(made, principals.create_role(made, new, "readers", root=ROOT))
    return made


def of(catalog: Catalog) -> set[Rule]:
    return rules_of(catalog, Access(lambda: catalog, ROOT)) - ROOTS


def grant(catalog: Catalog, right: str, database: str | None, grantee: str) -> None:
    target = None if database is None else catalog.database(database)
    apply(catalog, principals.grant(catalog, [right], target, grantee, root=ROOT))


def test_root_has_all_topics_of_rows() -> None:
    catalog = catalog_with()
    assert rules_of(catalog, Access(lambda: catalog, ROOT)) == ROOTS


def test_rights_on_a_database_are_those_on_its_topics() -> None:
    catalog = catalog_with("ann")
    assert of(catalog) == set()
    grant(catalog, "READ", "power", "ann")
    assert of(catalog) == rules("ann", "READ", *of_database("power"))
    grant(catalog, "WRITE", "water", "ann")
    assert of(catalog) == rules("ann", "READ", *of_database("power")) | rules(
        "ann", "WRITE", *of_database("water")
    )
    apply(
        catalog, principals.revoke(catalog, ["READ"], catalog.database("power"), "ann", root=ROOT)
    )
    assert of(catalog) == rules("ann", "WRITE", *of_database("water"))
    apply(catalog, changes.drop_database(catalog, "water"))
    assert of(catalog) == set()


@pytest.mark.parametrize("right", ["CREATE", "ALTER", "DROP"])
def test_other_rights_on_a_database_are_none_in_kafka(right: str) -> None:
    catalog = catalog_with("ann")
    grant(catalog, right, "power", "ann")
    assert of(catalog) == set()


def test_rights_on_a_table_are_none_in_kafka() -> None:
    catalog = catalog_with("ann")
    apply(
        catalog,
        principals.grant(catalog, ["ALL"], catalog.table("power", "meters"), "ann", root=ROOT),
    )
    assert of(catalog) == set()


@pytest.mark.parametrize("right", ["READ", "WRITE"])
def test_rights_on_everything_are_those_on_all_topics_of_rows(right: str) -> None:
    catalog = catalog_with("ann")
    grant(catalog, right, None, "ann")
    assert of(catalog) == rules("ann", right, EVERY)


def test_admin_has_both() -> None:
    catalog = catalog_with("ann")
    grant(catalog, "ADMIN", None, "ann")
    assert of(catalog) == rules("ann", "READ", EVERY) | rules("ann", "WRITE", EVERY)


def test_a_roles_rights_are_its_users_until_they_are_disabled() -> None:
    catalog = catalog_with("ann", "bob")
    grant(catalog, "READ", "power", "readers")
    apply(catalog, principals.give_role(catalog, "readers", "ann", root=ROOT))
    assert of(catalog) == rules("ann", "READ", *of_database("power"))
    apply(catalog, principals.alter_user(catalog, "ann", root=ROOT, enabled=False))
    assert of(catalog) == set()


@given(
    some.sets(
        some.tuples(
            some.sampled_from(("READ", "WRITE")),
            some.sampled_from(DATABASES),
            some.sampled_from(("ann", "bob")),
        )
    )
)
def test_every_rule_is_ours_and_none_matches_a_foreign_topic(
    grants: set[tuple[str, str, str]],
) -> None:
    catalog = catalog_with("ann", "bob")
    for right, database, user in sorted(grants):
        grant(catalog, right, database, user)
    found = of(catalog)
    assert all(ours(rule) for rule in found)
    topics = [
        names.ingest_topic(d, own, g) for d in DATABASES for own in (None, "t") for g in (1, 2)
    ]
    for topic in (*topics, names.CATALOG, names.EVENTS, names.DEAD_LETTER):
        for user in ("ann", "bob"):
            for right in ("READ", "WRITE"):
                mine = [
                    r
                    for r in found
                    if r.user == user and r.operation == right and r.kind == "TOPIC"
                ]
                allowed = any(
                    topic.startswith(r.name) if r.prefixed else topic == r.name for r in mine
                )
                due = topic.startswith("in.") and (right, names.database_of(topic), user) in grants
                assert allowed == due, (topic, user, right)


@pytest.mark.parametrize(
    "rule",
    [
        Rule("monitor", "READ", "TOPIC", "penstock.catalog"),
        Rule("monitor", "READ", "GROUP", "monitoring"),
        Rule(names.KAFKA_USER, "READ", "TOPIC", "in.power"),
    ],
)
def test_an_operators_rules_are_left_alone(rule: Rule) -> None:
    assert not ours(rule)


class Broker:
    """Kafka's rules and passwords, as far as these tests need them."""

    def __init__(self) -> None:
        self.held: set[Rule] = set()
        self.passwords: dict[str, str] = {}
        self.away = False

    def _ask(self) -> None:
        if self.away:
            raise BusError("no broker", retryable=True)

    def set_password(self, user: str, password: str) -> None:
        self._ask()
        self.passwords[user] = password

    def forget(self, user: str) -> None:
        self._ask()
        self.passwords.pop(user, None)

    def has_password(self, user: str) -> bool:
        self._ask()
        return user in self.passwords

    def rules(self) -> set[Rule]:
        self._ask()
        return set(self.held)

    def allow(self, rules: set[Rule]) -> None:
        self._ask()
        self.held |= rules

    def withdraw(self, rules: set[Rule]) -> None:
        self._ask()
        self.held -= rules


def test_kafka_follows_the_grants_and_catches_up_after_it_was_away() -> None:
    catalog = catalog_with("ann")
    broker = Broker()
    foreign = Rule("monitor", "READ", "GROUP", "monitoring")
    broker.held = {foreign, Rule("ann", "WRITE", "TOPIC", "in.water")}
    rights = KafkaRights(broker, lambda: catalog, Access(lambda: catalog, ROOT), "secret")  # type: ignore[arg-type]
    rights.keep()
    assert broker.held == ROOTS | {foreign}
    change = apply(
        catalog, principals.grant(catalog, ["READ"], catalog.database("power"), "ann", root=ROOT)
    )
    rights.follow(change)
    assert (
        broker.held == ROOTS | {foreign} | rules("ann", "READ", *of_database("power"))
        and not rights.behind
    )
    broker.away = True
    rights.follow(
        apply(
            catalog,
            principals.revoke(catalog, ["READ"], catalog.database("power"), "ann", root=ROOT),
        )
    )
    assert rights.behind
    broker.away = False
    rights.keep()
    assert broker.held == ROOTS | {foreign} and not rights.behind


def test_changes_that_are_nobodys_rights_ask_kafka_nothing() -> None:
    catalog = catalog_with("ann")
    broker = Broker()
    rights = KafkaRights(broker, lambda: catalog, Access(lambda: catalog, ROOT), "secret")  # type: ignore[arg-type]
    rights.keep()
    broker.away = True
    rights.follow(Change(puts=(catalog.database("power"),)))  # type: ignore[arg-type]
    assert not rights.behind


def test_only_a_password_that_is_missing_is_learned() -> None:
    catalog = catalog_with("ann")
    broker = Broker()
    rights = KafkaRights(broker, lambda: catalog, Access(lambda: catalog, ROOT), "secret")  # type: ignore[arg-type]
    broker.passwords["bob"] = "his"
    for user in ("ann", "bob", ROOT, names.KAFKA_USER):
        rights.learn(user, "told")
    rights._learning.shutdown(wait=True)
    assert broker.passwords == {"ann": "told", "bob": "his"}

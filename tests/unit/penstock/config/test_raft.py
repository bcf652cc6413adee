from __future__ import annotations

import pytest

from penstock.config.raft import parse_groups
from penstock.config.settings import Settings
from penstock.errors import CatalogError, ConfigError


def test_d9_several_groups_may_share_nodes() -> None:
    groups = parse_groups("11:NODE1:NODE2:NODE3, 12:NODE3:NODE4:NODE5:NODE6")
    assert [g.id for g in groups.of("NODE3")] == [11, 12]
    assert groups.of("NODE9") == ()
    assert [g.majority for g in groups.groups] == [2, 3]
    assert groups.nodes == ("NODE1", "NODE2", "NODE3", "NODE4", "NODE5", "NODE6")
    assert str(groups) == "11:NODE1:NODE2:NODE3,12:NODE3:NODE4:NODE5:NODE6"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("11:N1:N2", "at least 3 nodes"),
        ("11:N1:N2:N2", "a node is there twice"),
        ("11:N1:N2:N3,11:N4:N5:N6", "group 11 is there twice"),
        ("1:N1:N2:N3", "greater than 1"),
        ("x:N1:N2:N3", "greater than 1"),
        ("-5:N1:N2:N3", "greater than 1"),
        ("11:N1::N3", "cannot be a node's alias"),
        ("11:N1:N 2:N3", "cannot be a node's alias"),
    ],
)
def test_d9_what_cannot_be_a_group(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_groups(text)


def test_d23_learners_keep_copies_and_do_not_vote() -> None:
    (group,) = parse_groups("3:N1:N2:N3", "3:N4:N5").groups
    assert (group.members, group.learners, group.majority) == (("N1", "N2", "N3"), ("N4", "N5"), 2)
    for learners, message in (("4:N4", "no group 4"), ("3:N1", "twice")):
        with pytest.raises(ConfigError, match=message):
            parse_groups("3:N1:N2:N3", learners)


def test_d24_every_group_may_have_an_alias() -> None:
    groups = parse_groups("11:N1:N2:N3,12:N1:N2:N3", "", "trades:12")
    assert groups.find("trades").id == groups.find(12).id == groups.find("12").id == 12
    for aliases, message in (
        ("trades:13", "no group 13"),
        ("a:11,a:12", "cannot be an alias"),
        ("7:11", "cannot be an alias"),
    ):
        with pytest.raises(ConfigError, match=message):
            parse_groups("11:N1:N2:N3,12:N1:N2:N3", "", aliases)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (1, "E_RAFT_GROUP"),
        (0, "E_RAFT_GROUP"),
        (-5, "E_RAFT_GROUP"),
        ("x", "E_RAFT_GROUP"),
        (99, "E_NO_GROUP"),
    ],
)
def test_d2_a_group_that_is_none_is_refused_by_the_arguments_name(
    wanted: int | str, code: str
) -> None:
    with pytest.raises(CatalogError, match="raftGroup") as refused:
        parse_groups("2:N1:N2:N3").find(wanted)
    assert refused.value.code == code


def test_d2_two_is_the_smallest_id() -> None:
    assert parse_groups("2:N1:N2:N3").find(2).id == 2


def test_settings_are_checked_at_the_start() -> None:
    with pytest.raises(ConfigError, match="configuration") as wrong:
        Settings.load(streaming_ha_mode="raft", streaming_raft_groups="11:N1:N2")
    assert "at least 3 nodes" in wrong.value.detail
    with pytest.raises(ConfigError):
        Settings.load(streaming_ha_mode="paxos")
    assert Settings.load(streaming_raft_groups="11:N1:N2:N3").raft_groups.groups == ()

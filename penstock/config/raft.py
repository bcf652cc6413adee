"""Groups of nodes that keep highly available stream tables: what `streamingRaftGroups` and its
companions say.

Pure: text in, groups out. The names of the settings are those that users of such tables know; what
stands behind them here is a lease and a fenced log, not the Raft protocol. Refused: an id below 2,
fewer than three nodes, a node or an id twice, a learner that votes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import CatalogError, ConfigError

_ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")
MIN_MEMBERS = 3
#: what every setting of this file starts with in messages
GROUPS = "streamingRaftGroups"
LEARNERS = "streamingRaftLearners"
ALIASES = "streamingRaftGroupAliases"


@dataclass(frozen=True)
class Group:
    """`members` vote: a majority of them has to be there. `learners` keep copies and never lead."""

    id: int
    members: tuple[str, ...]
    learners: tuple[str, ...] = ()
    alias: str = ""

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.members + self.learners

    @property
    def majority(self) -> int:
        return len(self.members) // 2 + 1


@dataclass(frozen=True)
class RaftGroups:
    """Every group of a deployment."""

    groups: tuple[Group, ...] = ()

    def of(self, node: str) -> tuple[Group, ...]:
        """The groups that *node* keeps copies for."""
        return tuple(g for g in self.groups if node in g.nodes)

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(n for g in self.groups for n in g.nodes))

    def find(self, wanted: int | str) -> Group:
        """Return the group with this id or alias.

        Raises:
            CatalogError: the id cannot be one (`E_RAFT_GROUP`), or there is no such group
                (`E_NO_GROUP`).
        """
        text = str(wanted)
        for group in self.groups:
            if group.alias and group.alias == text:
                return group
        number = int(text) if re.fullmatch(r"-?\d{1,9}", text) else 0
        if isinstance(wanted, bool) or number <= 1:
            hint = f"groups are {self}" if self.groups else f"set {GROUPS}"
            raise CatalogError(
                f"raftGroup must be an integer greater than 1 or an alias, not {wanted!r}",
                code="E_RAFT_GROUP",
                hint=hint,
            )
        for group in self.groups:
            if group.id == number:
                return group
        raise CatalogError(
            f"raftGroup {number} is not configured",
            code="E_NO_GROUP",
            hint=f"groups are {self}; see {GROUPS}",
        )

    def __str__(self) -> str:
        return ",".join(":".join([str(g.id), *g.members]) for g in self.groups) or "none"


def parse_groups(groups: str, learners: str = "", aliases: str = "") -> RaftGroups:
    """Read the groups in *groups* (`11:N1:N2:N3,12:…`), with *learners* (`11:N4,…`) and *aliases*
    (`name:11,…`).

    Raises:
        ConfigError: what is wrong with which part.
    """
    found = _parse_members(groups)
    _add_learners(found, learners)
    _add_aliases(found, aliases)
    return RaftGroups(tuple(found.values()))


def _parse_members(groups: str) -> dict[int, Group]:
    found: dict[int, Group] = {}
    for part in _parts(groups):
        number, *members = (piece.strip() for piece in part.split(":"))
        group_id = _id(number, part, GROUPS)
        if group_id in found:
            raise _refuse(GROUPS, f"group {group_id} is there twice")
        _check_nodes(members, part, GROUPS)
        if len(members) < MIN_MEMBERS:
            raise _refuse(
                GROUPS, f"{part}: a group has at least {MIN_MEMBERS} nodes, so that one may fail"
            )
        found[group_id] = Group(group_id, tuple(members))
    return found


def _add_learners(found: dict[int, Group], learners: str) -> None:
    for part in _parts(learners):
        number, *added = (piece.strip() for piece in part.split(":"))
        group = _existing_group(found, number, part, LEARNERS)
        _check_nodes([*group.members, *group.learners, *added], part, LEARNERS)
        found[group.id] = Group(group.id, group.members, (*group.learners, *added))


def _add_aliases(found: dict[int, Group], aliases: str) -> None:
    for part in _parts(aliases):
        alias, _, number = (piece.strip() for piece in part.partition(":"))
        group = _existing_group(found, number, part, ALIASES)
        if not _ALIAS.match(alias) or any(g.alias == alias for g in found.values()):
            raise _refuse(
                ALIASES, f"{part}: {alias!r} cannot be an alias", hint="a name, each once: alias:11"
            )
        found[group.id] = Group(group.id, group.members, group.learners, alias)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _id(number: str, part: str, setting: str) -> int:
    if not number.isdecimal() or int(number) <= 1:
        raise _refuse(
            setting,
            f"{part}: a group's id is an integer greater than 1",
            hint="11:NODE1:NODE2:NODE3",
        )
    return int(number)


def _existing_group(found: dict[int, Group], number: str, part: str, setting: str) -> Group:
    group = found.get(_id(number, part, setting))
    if group is None:
        raise _refuse(setting, f"{part}: there is no group {number} in {GROUPS}")
    return group


def _check_nodes(nodes: list[str], part: str, setting: str) -> None:
    wrong = [n for n in nodes if not _ALIAS.match(n)]
    if wrong:
        raise _refuse(
            setting,
            f"{part}: {wrong[0]!r} cannot be a node's alias",
            hint="letters, digits, _ and -, a letter first",
        )
    if len(set(nodes)) < len(nodes):
        raise _refuse(setting, f"{part}: a node is there twice")


def _refuse(setting: str, what: str, hint: str = "") -> ConfigError:
    return ConfigError(f"{setting}: {what}", hint=hint)

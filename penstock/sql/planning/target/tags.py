"""Tags of a result: given by TAGS, or the partition keys and `group_id`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from penstock.sql.plan import Column
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.target.request import TargetRequest, check_name
from penstock.sql.planning.view import TableDef
from penstock.sql.relational.select_list import MAX_COLUMN_NAME_BYTES
from penstock.sql.statements import Name, TargetTag
from penstock.types import ColumnType

GROUP_ID = Column("group_id", ColumnType("BIGINT UNSIGNED"))
#: column names that rows carry on their way (penstock.windows.kernel, wire format)
RESERVED = ("tbname", "op", "_op", "_now", "_step", "_offset")
#: names that no key gives a tag: those that rows and groups carry on their way, too
#: (penstock.catalog.changes.limits, penstock.windows.groups.groups)
_NO_TAG = (*RESERVED, "_record", "_write", "_reason", "_late", "_hash", "_group")
MAX_COLUMNS = 4096
MAX_TAGS = 128
#: result columns, each with the expression over plan names that fills it
Filled = Sequence[tuple[str, str | None]]
TagOrigin = int | Literal["group_id"] | None


def _automatic_tags(
    request: TargetRequest, columns: Filled
) -> tuple[tuple[Column, ...], tuple[TagOrigin, ...]]:
    """Return tags of a result that has no TAGS clause: the partition keys under their own names,
    and `group_id`.

    A key that is a result column of that name already is not a tag as well. Where the name means
    something else (`tbname`, another column) the tag is called `tag_…`.
    """
    filled = {(name.lower(), sql) for name, sql in columns}
    taken = {name for name, _ in filled} | {GROUP_ID.name, *_NO_TAG}
    made: list[tuple[Column, TagOrigin]] = []
    room = max(min(MAX_TAGS, MAX_COLUMNS - len(columns)) - 1, 0)
    for place, key in enumerate(request.keys.items[:room]):
        own = _short(key.alias)
        if {(own.lower(), key.sql), (own.lower(), f"_k{place}")} & filled:
            continue
        name = _free(own, taken)
        taken.add(name.lower())
        made.append((Column(name, key.type), place))
    # rows that pass through may bring the group_id of the result that they come from
    passed = (GROUP_ID.name, GROUP_ID.name) in filled
    group = _free(GROUP_ID.name, taken) if passed else GROUP_ID.name
    made.append((replace(GROUP_ID, name=group), "group_id"))
    return tuple(column for column, _ in made), tuple(origin for _, origin in made)


def _free(name: str, taken: set[str]) -> str:
    """Return *name*, or `tag_…` where something else has it."""
    others = (_short(f"tag{n or ''}_{name}") for n in itertools.count())
    return next(n for n in itertools.chain((name,), others) if n.lower() not in taken)


def _short(name: str) -> str:
    return name.encode()[:MAX_COLUMN_NAME_BYTES].decode(errors="ignore")


def plan_new_tags(
    request: TargetRequest, columns: Filled
) -> tuple[tuple[Column, ...], tuple[TagOrigin, ...]]:
    """Return tags of a table to create, and the origin of each."""
    tags = request.statement.tags
    if tags is None:
        return _automatic_tags(request, columns)
    made = _tag_columns(request, tags)
    for tag in tags:
        check_name(
            request.statement, Name(tag.name, offset=tag.offset), "TAGS", MAX_COLUMN_NAME_BYTES
        )
    return made, tuple(_key_of_tag(request, t.name, t.offset) for t in tags)


def _tag_columns(request: TargetRequest, tags: tuple[TargetTag, ...]) -> tuple[Column, ...]:
    bare = next((t for t in tags if t.type is None), None)
    if bare is not None:
        refuse(
            request.statement,
            "E_TABLE_NOT_EXIST",
            request.name,
            clause="INTO",
            table=request.shown,
            hint=f"give the tags types, and it is created: TAGS({bare.name} VARCHAR(64))",
        )
    made = tuple(Column(t.name, t.type) for t in tags if t.type is not None)
    if any(c.type.kind == "JSON" for c in made) and len(made) > 1:
        refuse(
            request.statement,
            "E_TARGET_TAGS",
            tags[0].offset,
            what="a JSON tag must be the only one",
            hint="use VARCHAR instead",
        )
    return made


def _key_of_tag(request: TargetRequest, name: str, offset: int) -> int | None:
    """Return the place of the partition key that fills the tag *name*; without PARTITION BY none
    does.
    """
    if not request.keys.items:
        return None
    place = request.keys.place_of_alias(name)
    if place is None:
        known = ", ".join(k.alias for k in request.keys.items)
        refuse(
            request.statement,
            "E_TAG_NOT_IN_PARTITION",
            offset,
            name=name,
            hint=f"use one of {known}, or write PARTITION BY expression AS {name}",
        )
    return place


def plan_existing_tags(
    request: TargetRequest, table: TableDef, columns: Filled
) -> tuple[TagOrigin, ...]:
    """Return the origins of the tags of a table that exists."""
    tags = request.statement.tags
    keys = request.keys.items
    if tags is not None:
        return _clause_origins(request, table, tags)
    if len(table.tags) == 1 and table.tags[0].type == GROUP_ID.type:
        return ("group_id",)
    if table.result_of is not None and GROUP_ID in table.tags:
        return match_tags(table.tags, *_automatic_tags(request, columns))
    if not keys:
        return tuple(None for _ in table.tags)
    if len(keys) != len(table.tags):
        refuse(
            request.statement,
            "E_TARGET_TAGS",
            request.name,
            what=f"{request.shown} has {len(table.tags)} tags, PARTITION BY gives {len(keys)}",
            hint=(
                f"say which ones they are: TAGS({', '.join(k.alias for k in keys)}), with PARTITION"
                " BY … AS name"
            ),
        )
    return tuple(range(len(keys)))


def _clause_origins(
    request: TargetRequest, table: TableDef, tags: tuple[TargetTag, ...]
) -> tuple[TagOrigin, ...]:
    """Return the origins that the TAGS clause gives; NULL fills tags that it leaves out."""
    origins: dict[str, TagOrigin] = {}
    known = {t.name.lower() for t in table.tags}
    for tag in tags:
        name = tag.name.lower()
        if name not in known or name in origins:
            twice = f"{tag.name} is named twice"
            missing = f"{request.shown} has no tag {tag.name}"
            refuse(
                request.statement,
                "E_TARGET_TAGS",
                tag.offset,
                what=twice if name in origins else missing,
                hint="its tags are " + ", ".join(t.name for t in table.tags),
            )
        origins[name] = _key_of_tag(request, tag.name, tag.offset)
    return tuple(origins.get(t.name.lower()) for t in table.tags)


def match_tags(
    tags: tuple[Column, ...], automatic: tuple[Column, ...], origins: tuple[TagOrigin, ...]
) -> tuple[TagOrigin, ...]:
    """Return the origins of the *tags* of a result that exists, by name among those that the stream
    would have given a new one; NULL fills the others.
    """
    known = {tag.name.lower(): origin for tag, origin in zip(automatic, origins, strict=True)}
    return tuple(known.get(tag.name.lower()) for tag in tags)

"""Where results go: a new supertable's columns and tags, or how they map to those of one that
exists; names of its children.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from penstock.names import MAX_NAME_BYTES
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Column, Output, Target
from penstock.sql.planning.binder import Binder
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.selecting import MAX_COLUMN_NAME_BYTES, Keys, Selection
from penstock.sql.planning.view import SchemaView, TableDef
from penstock.sql.statements import CreateStream, Name
from penstock.types import ColumnType

GROUP_ID = Column("group_id", ColumnType("BIGINT UNSIGNED"))
#: column names that rows carry on their way (penstock.windows.kernel, wire format)
RESERVED = ("tbname", "op", "_op", "_now", "_step", "_offset")
#: names that no key gives a tag: those that rows and groups carry on their way, too
#: (penstock.catalog.changes.limits, penstock.windows.groups)
_NO_TAG = (*RESERVED, "_record", "_write", "_reason", "_late", "_hash", "_group")
MAX_COLUMNS = 4096
MAX_TAGS = 128
#: longest value that is converted to another type
MAX_CONVERTED_BYTES = 4096
#: result columns, each with the expression over plan names that fills it
Filled = Sequence[tuple[str, str | None]]
TagOrigin = int | Literal["group_id"] | None
_KEY_KINDS = ("INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "VARCHAR")


@dataclass(frozen=True)
class PlannedTarget:
    """`outputs` with final names; `definition` is the table to create (None: it exists)."""

    target: Target
    outputs: tuple[Output, ...]
    definition: TableDef | None


@dataclass(frozen=True)
class Wanted:
    """Everything that decides about the target."""

    statement: CreateStream
    binder: Binder
    view: SchemaView
    database: str
    keys: Keys
    selection: Selection
    windowed: bool

    @property
    def name(self) -> Name:
        return self.statement.target

    @property
    def shown(self) -> str:
        return f"{self.database}.{self.name.name}"


def plan_target(wanted: Wanted, target_id: int) -> PlannedTarget:
    """The target of the statement; *target_id* is the id of a table that is created."""
    check_name(wanted.statement, wanted.name, "INTO", MAX_NAME_BYTES)
    existing = wanted.view.table(wanted.database, wanted.name.name)
    outputs = (
        _unique(wanted.selection.outputs)
        if existing or wanted.statement.target_columns
        else tuple(wanted.selection.outputs)
    )
    subtable = _subtable(wanted)
    if existing is None:
        return _new(wanted, outputs, subtable, target_id)
    return _existing(wanted, outputs, subtable, existing)


def check_name(statement: CreateStream, name: Name, clause: str, limit: int) -> None:
    """Names have a length in bytes."""
    size = len(name.name.encode())
    if size > limit:
        refuse(statement, "E_NAME_LENGTH", name, clause=clause, bytes=size, limit=limit)


def _unique(outputs: list[Output]) -> tuple[Output, ...]:
    """Outputs whose names differ: only their place matters where the target has names of its
    own.
    """
    seen: set[str] = set()
    made = []
    for i, output in enumerate(outputs):
        name = output.name if output.name.lower() not in seen else f"{output.name}#{i}"
        seen.add(name.lower())
        made.append(replace(output, name=name))
    return tuple(made)


# ---------------------------------------------------------------- a new table


def _new(
    wanted: Wanted, outputs: tuple[Output, ...], subtable: str | None, target_id: int
) -> PlannedTarget:
    statement = wanted.statement
    listed = wanted.statement.target_columns
    if listed is not None:
        if len(listed) != len(outputs):
            _count_mismatch(wanted, len(listed), len(outputs), "the column list")
        columns = tuple(Column(c.name, o.type) for c, o in zip(listed, outputs, strict=True))
        for given in listed:
            check_name(
                statement, Name(given.name, offset=given.offset), "INTO", MAX_COLUMN_NAME_BYTES
            )
    else:
        columns = tuple(Column(o.name, o.type) for o in outputs)
        for column, node in zip(columns, wanted.selection.nodes, strict=True):
            _check_column_name(statement, column.name, node)
    tags, tag_of = _new_tags(
        wanted, [(c.name, o.sql) for c, o in zip(columns, outputs, strict=True)]
    )
    _check_distinct(wanted, columns, tags)
    key = _new_key(wanted, columns)
    precision = wanted.view.precision(wanted.database) or wanted.binder.source.precision
    definition = TableDef(
        target_id, wanted.database, wanted.name.name, "stable", columns, tags, precision, key
    )
    target = Target(
        target_id,
        wanted.database,
        wanted.name.name,
        columns,
        tags,
        tuple(o.name for o in outputs),
        tag_of,
        subtable_sql=subtable,
        key_column=key,
        precision=precision,
        beside=True,
    )
    return PlannedTarget(target, outputs, definition)


def _check_column_name(statement: CreateStream, name: str, node: exp.Expr) -> None:
    size = len(name.encode())
    if size > MAX_COLUMN_NAME_BYTES:
        refuse(
            statement,
            "E_NAME_LENGTH",
            node,
            clause="AS SELECT",
            bytes=size,
            limit=MAX_COLUMN_NAME_BYTES,
        )


def _check_distinct(wanted: Wanted, columns: tuple[Column, ...], tags: tuple[Column, ...]) -> None:
    statement = wanted.statement
    if len(columns) > MAX_COLUMNS:
        refuse(
            statement,
            "E_TARGET_COLUMNS",
            wanted.name,
            what=f"{len(columns)} columns are too many",
            hint=f"the limit is {MAX_COLUMNS}",
        )
    if len(tags) > MAX_TAGS:
        refuse(
            statement,
            "E_TARGET_TAGS",
            wanted.name,
            what=f"{len(tags)} tags are too many",
            hint=f"the limit is {MAX_TAGS}",
        )
    seen: set[str] = set()
    places: list[exp.Expr | int | None] = list(wanted.selection.nodes)
    if statement.target_columns is not None:
        places = [c.offset for c in statement.target_columns]
    for i, column in enumerate((*columns, *tags)):
        at = (
            places[i]
            if i < len(columns)
            else statement.positions.get("tags", statement.positions.get("into"))
        )
        clause = (
            "TAGS"
            if i >= len(columns)
            else "INTO"
            if statement.target_columns is not None
            else "AS SELECT"
        )
        if column.name.lower() in RESERVED:
            refuse(statement, "E_RESERVED_NAME", at, clause=clause, name=column.name)
        if column.name.lower() in seen:
            refuse(statement, "E_DUPLICATE_COLUMN", at, clause=clause, name=column.name)
        seen.add(column.name.lower())


def _automatic_tags(
    wanted: Wanted, columns: Filled
) -> tuple[tuple[Column, ...], tuple[TagOrigin, ...]]:
    """Tags of a result that has no TAGS clause: the partition keys under their own names, and
    `group_id`.

    A key that is a result column of that name already is not a tag as well. Where the name means
    something else (`tbname`, another column) the tag is called `tag_…`.
    """
    filled = {(name.lower(), sql) for name, sql in columns}
    taken = {name for name, _ in filled} | {GROUP_ID.name, *_NO_TAG}
    made: list[tuple[Column, TagOrigin]] = []
    room = max(min(MAX_TAGS, MAX_COLUMNS - len(columns)) - 1, 0)
    for place, key in enumerate(wanted.keys.items[:room]):
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
    """*name*, or `tag_…` where something else has it."""
    others = (_short(f"tag{n or ''}_{name}") for n in itertools.count())
    return next(n for n in itertools.chain((name,), others) if n.lower() not in taken)


def _short(name: str) -> str:
    return name.encode()[:MAX_COLUMN_NAME_BYTES].decode(errors="ignore")


def _new_tags(wanted: Wanted, columns: Filled) -> tuple[tuple[Column, ...], tuple[TagOrigin, ...]]:
    tags = wanted.statement.tags
    if tags is None:
        return _automatic_tags(wanted, columns)
    bare = next((t for t in tags if t.type is None), None)
    if bare is not None:
        refuse(
            wanted.statement,
            "E_TABLE_NOT_EXIST",
            wanted.name,
            clause="INTO",
            table=wanted.shown,
            hint=f"give the tags types, and it is created: TAGS({bare.name} VARCHAR(64))",
        )
    made = tuple(Column(t.name, t.type) for t in tags if t.type is not None)
    if any(c.type.kind == "JSON" for c in made) and len(made) > 1:
        refuse(
            wanted.statement,
            "E_TARGET_TAGS",
            tags[0].offset,
            what="a JSON tag must be the only one",
            hint="use VARCHAR instead",
        )
    for tag in tags:
        check_name(
            wanted.statement, Name(tag.name, offset=tag.offset), "TAGS", MAX_COLUMN_NAME_BYTES
        )
    return made, tuple(_key_of_tag(wanted, t.name, t.offset) for t in tags)


def _key_of_tag(wanted: Wanted, name: str, offset: int) -> int | None:
    """Which partition key fills the tag *name*; without PARTITION BY none does."""
    if not wanted.keys.items:
        return None
    place = wanted.keys.named(name)
    if place is None:
        known = ", ".join(k.alias for k in wanted.keys.items)
        refuse(
            wanted.statement,
            "E_TAG_NOT_IN_PARTITION",
            offset,
            name=name,
            hint=f"use one of {known}, or write PARTITION BY expression AS {name}",
        )
    return place


def _new_key(wanted: Wanted, columns: tuple[Column, ...]) -> str | None:
    """The composite key of a new table: asked for in the column list, or the source's own where
    rows pass through.
    """
    listed = wanted.statement.target_columns or ()
    marked = [i for i, c in enumerate(listed) if c.composite_key]
    if marked and marked != [1]:
        refuse(
            wanted.statement,
            "E_TARGET_COLUMNS",
            listed[marked[0]].offset,
            what="COMPOSITE KEY belongs to the second column",
            hint="put that column second",
        )
    passing = not wanted.windowed and wanted.binder.source.key_column
    if not marked and not passing:
        return None
    if len(columns) < 2 or columns[1].type.kind not in _KEY_KINDS:
        kind = columns[1].type if len(columns) > 1 else "missing"
        refuse(
            wanted.statement,
            "E_TARGET_COLUMNS",
            wanted.name,
            what=f"a composite key is an integer or VARCHAR, the second column is {kind}",
            hint="choose INT, BIGINT (UNSIGNED) or VARCHAR",
        )
    return columns[1].name


# ---------------------------------------------------------------- a table that exists


def _existing(
    wanted: Wanted, outputs: tuple[Output, ...], subtable: str | None, table: TableDef
) -> PlannedTarget:
    statement = wanted.statement
    source = wanted.binder.source
    if table.kind != "stable":
        kinds = {"child": "a child table", "plain": "a plain table", "virtual": "a virtual table"}
        refuse(
            statement,
            "E_TARGET_NOT_STABLE",
            wanted.name,
            table=wanted.shown,
            kind=kinds[table.kind],
        )
    if table.id == source.id:
        refuse(statement, "E_TARGET_IS_SOURCE", wanted.name, table=wanted.shown)
    others = [
        s
        for s in wanted.view.streams_into(wanted.database, table.name)
        if s.lower() != statement.stream.name.lower()
    ]
    if others or (
        wanted.view.streams_into(wanted.database, table.name) and not statement.or_replace
    ):
        stream = (others or list(wanted.view.streams_into(wanted.database, table.name)))[0]
        refuse(statement, "E_TARGET_IN_USE", wanted.name, stream=stream, table=wanted.shown)
    if statement.tags is not None and any(t.type is not None for t in statement.tags):
        names = ", ".join(t.name for t in statement.tags)
        refuse(
            statement,
            "E_TARGET_EXISTS",
            statement.positions.get("tags"),
            table=wanted.shown,
            names=names,
        )
    column_of = _columns_of(wanted, outputs, table)
    filling = {o.name: o.sql for o in outputs}
    tag_of = _tags_of(
        wanted,
        table,
        [
            (c.name, filling[o] if o else None)
            for c, o in zip(table.columns, column_of, strict=True)
        ],
    )
    _check_conversions(wanted, outputs, table, column_of)
    if table.key_column and column_of[1] is None:
        refuse(
            statement,
            "E_TARGET_COLUMNS",
            wanted.name,
            what=f"{table.key_column}, the composite key of {wanted.shown}, is not filled",
            hint=f"add {table.key_column} to the column list",
        )
    if not wanted.windowed and source.key_column and not table.key_column:
        refuse(
            statement,
            "E_TARGET_COLUMNS",
            wanted.name,
            what=f"{source.shown} has a composite key, but {wanted.shown} has none",
            hint="choose a table with a composite key, or let the stream create one",
        )
    target = Target(
        table.id,
        table.database,
        table.name,
        table.columns,
        table.tags,
        column_of,
        tag_of,
        subtable_sql=subtable,
        key_column=table.key_column,
        precision=table.precision,
        beside=True,
    )
    return PlannedTarget(target, outputs, None)


def _count_mismatch(wanted: Wanted, listed: int, given: int, what: str) -> None:
    hint = (
        "the first result column is the window's start"
        if wanted.windowed
        else "name as many columns as the select list has"
    )
    refuse(
        wanted.statement,
        "E_TARGET_COLUMNS",
        wanted.statement.positions.get("columns", wanted.statement.positions.get("into")),
        what=f"{what} has {listed} columns, the select list gives {given}",
        hint=hint,
    )


def _columns_of(
    wanted: Wanted, outputs: tuple[Output, ...], table: TableDef
) -> tuple[str | None, ...]:
    listed = wanted.statement.target_columns
    if listed is None:
        if len(outputs) != len(table.columns):
            some = [c.name for c in table.columns[: len(outputs)]]
            refuse(
                wanted.statement,
                "E_TARGET_COLUMNS",
                wanted.name,
                what=(
                    f"{wanted.shown} has {len(table.columns)} columns, the select list gives"
                    f" {len(outputs)}"
                ),
                hint=f"say which ones they are: {wanted.name.name}({', '.join(some)})",
            )
        return tuple(o.name for o in outputs)
    if len(listed) != len(outputs):
        _count_mismatch(wanted, len(listed), len(outputs), "the column list")
    filled: dict[str, str] = {}
    known = {c.name.lower() for c in table.columns}
    for column, output in zip(listed, outputs, strict=True):
        name = column.name.lower()
        if name not in known or name in filled:
            what = (
                f"{column.name} is named twice"
                if name in filled
                else f"{wanted.shown} has no column {column.name}"
            )
            refuse(
                wanted.statement,
                "E_TARGET_COLUMNS",
                column.offset,
                what=what,
                hint="its columns are " + ", ".join(c.name for c in table.columns),
            )
        filled[name] = output.name
    time = table.columns[0].name
    if time.lower() not in filled:
        refuse(
            wanted.statement,
            "E_TARGET_NO_TS",
            wanted.statement.positions.get("columns"),
            name=time,
            table=wanted.shown,
        )
    return tuple(filled.get(c.name.lower()) for c in table.columns)


def _tags_of(wanted: Wanted, table: TableDef, columns: Filled) -> tuple[TagOrigin, ...]:
    tags = wanted.statement.tags
    keys = wanted.keys.items
    if tags is not None:
        origins: dict[str, TagOrigin] = {}
        known = {t.name.lower() for t in table.tags}
        for tag in tags:
            if tag.name.lower() not in known or tag.name.lower() in origins:
                what = (
                    f"{tag.name} is named twice"
                    if tag.name.lower() in origins
                    else f"{wanted.shown} has no tag {tag.name}"
                )
                shown = ", ".join(t.name for t in table.tags)
                refuse(
                    wanted.statement,
                    "E_TARGET_TAGS",
                    tag.offset,
                    what=what,
                    hint=f"its tags are {shown}",
                )
            origins[tag.name.lower()] = _key_of_tag(wanted, tag.name, tag.offset)
        return tuple(origins.get(t.name.lower()) for t in table.tags)
    if len(table.tags) == 1 and table.tags[0].type == GROUP_ID.type:
        return ("group_id",)
    if table.result_of is not None and GROUP_ID in table.tags:
        return matched_tags(table.tags, *_automatic_tags(wanted, columns))
    if not keys:
        return tuple(None for _ in table.tags)
    if len(keys) != len(table.tags):
        refuse(
            wanted.statement,
            "E_TARGET_TAGS",
            wanted.name,
            what=f"{wanted.shown} has {len(table.tags)} tags, PARTITION BY gives {len(keys)}",
            hint=(
                f"say which ones they are: TAGS({', '.join(k.alias for k in keys)}), with PARTITION"
                " BY … AS name"
            ),
        )
    return tuple(range(len(keys)))


def matched_tags(
    tags: tuple[Column, ...], automatic: tuple[Column, ...], origins: tuple[TagOrigin, ...]
) -> tuple[TagOrigin, ...]:
    """What fills the *tags* of a result that exists, of tags that a stream would have given a new
    one; NULL fills the others.
    """
    known = {tag.name.lower(): origin for tag, origin in zip(automatic, origins, strict=True)}
    return tuple(known.get(tag.name.lower()) for tag in tags)


def _check_conversions(
    wanted: Wanted, outputs: tuple[Output, ...], table: TableDef, column_of: tuple[str | None, ...]
) -> None:
    """A conversion is possible between all types but to the time column, and of values that are not
    too long.
    """
    types = {o.name: o.type for o in outputs}
    nodes = {o.name: n for o, n in zip(outputs, wanted.selection.nodes, strict=True)}
    for i, (column, origin) in enumerate(zip(table.columns, column_of, strict=True)):
        if origin is None:
            continue
        given = types[origin]
        if given != column.type and given.sized and given.length > MAX_CONVERTED_BYTES:
            refuse(
                wanted.statement,
                "E_RESULT_TOO_LONG",
                nodes[origin],
                name=column.name,
                type=given,
                limit=MAX_CONVERTED_BYTES,
            )
        if i == 0 and given.kind != "TIMESTAMP":
            refuse(
                wanted.statement,
                "E_TARGET_COLUMNS",
                nodes[origin],
                what=f"{column.name} is the time column, {origin} is {given}",
                hint="fill it with _wstart or another time",
            )


# ---------------------------------------------------------------- names of child tables


def _subtable(wanted: Wanted) -> str | None:
    """SUBTABLE's expression over `_k0…`."""
    node = wanted.statement.subtable
    binder = wanted.binder
    if node is None:
        return None
    columns = {f"_k{i}": k.type for i, k in enumerate(wanted.keys.items)}
    lowered = _over_keys(wanted, binder.bind(node))
    kind = binder.compiled(lowered, columns).type
    if kind.kind != "VARCHAR":
        refuse(wanted.statement, "E_SUBTABLE_TYPE", node, type=kind)
    return to_sql(lowered)


def _over_keys(wanted: Wanted, node: exp.Expr) -> exp.Expr:
    keys = wanted.keys
    place = keys.place(node)
    if place is None and isinstance(node, exp.Column):
        place = keys.named(node.name)
        if place is None:
            known = ", ".join(k.alias for k in keys.items)
            hint = (
                f"use {known}, or add it: PARTITION BY …, {node.name}"
                if known
                else f"add PARTITION BY {node.name}"
            )
            refuse(wanted.statement, "E_SUBTABLE_COLUMN", node, name=node.name, hint=hint)
    if place is not None:
        made = exp.Column(this=exp.Identifier(this=f"_k{place}", quoted=False))
        made.meta.update(node.meta)
        return made
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expr) and not isinstance(value, exp.Identifier):
            node.set(key, _over_keys(wanted, value))
        elif isinstance(value, list):
            node.set(key, [_over_keys(wanted, v) if isinstance(v, exp.Expr) else v for v in value])
    return node

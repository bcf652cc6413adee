"""A result table that the stream creates."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.plan import Column, Output, Target
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.target.request import (
    PlannedTarget,
    TargetRequest,
    check_name,
    count_mismatch,
)
from penstock.sql.planning.target.tags import MAX_COLUMNS, MAX_TAGS, RESERVED, plan_new_tags
from penstock.sql.planning.view import TableDef
from penstock.sql.relational.select_list import MAX_COLUMN_NAME_BYTES
from penstock.sql.statements import CreateStream, Name

_KEY_KINDS = ("INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "VARCHAR")


def plan_new(
    request: TargetRequest, outputs: tuple[Output, ...], subtable: str | None, target_id: int
) -> PlannedTarget:
    """Plan a table to create, whose id is *target_id*."""
    statement = request.statement
    listed = statement.target_columns
    if listed is not None:
        if len(listed) != len(outputs):
            count_mismatch(request, len(listed), len(outputs), "the column list")
        columns = tuple(Column(c.name, o.type) for c, o in zip(listed, outputs, strict=True))
        for given in listed:
            check_name(
                statement, Name(given.name, offset=given.offset), "INTO", MAX_COLUMN_NAME_BYTES
            )
    else:
        columns = tuple(Column(o.name, o.type) for o in outputs)
        for column, node in zip(columns, request.selection.nodes, strict=True):
            _check_column_name(statement, column.name, node)
    tags, tag_of = plan_new_tags(
        request, [(c.name, o.sql) for c, o in zip(columns, outputs, strict=True)]
    )
    _check_names(request, columns, tags)
    key = _composite_key(request, columns)
    precision = request.view.precision(request.database) or request.context.source.precision
    definition = TableDef(
        target_id, request.database, request.name.name, "stable", columns, tags, precision, key
    )
    target = Target(
        target_id,
        request.database,
        request.name.name,
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


def _check_names(
    request: TargetRequest, columns: tuple[Column, ...], tags: tuple[Column, ...]
) -> None:
    statement = request.statement
    if len(columns) > MAX_COLUMNS:
        refuse(
            statement,
            "E_TARGET_COLUMNS",
            request.name,
            what=f"{len(columns)} columns are too many",
            hint=f"the limit is {MAX_COLUMNS}",
        )
    if len(tags) > MAX_TAGS:
        refuse(
            statement,
            "E_TARGET_TAGS",
            request.name,
            what=f"{len(tags)} tags are too many",
            hint=f"the limit is {MAX_TAGS}",
        )
    seen: set[str] = set()
    places = _places(request, len(tags))
    for column, (clause, at) in zip((*columns, *tags), places, strict=True):
        if column.name.lower() in RESERVED:
            refuse(statement, "E_RESERVED_NAME", at, clause=clause, name=column.name)
        if column.name.lower() in seen:
            refuse(statement, "E_DUPLICATE_COLUMN", at, clause=clause, name=column.name)
        seen.add(column.name.lower())


def _places(request: TargetRequest, tags: int) -> list[tuple[str, exp.Expr | int | None]]:
    """Return the clause and the place of each column, then of each of so many *tags*."""
    statement = request.statement
    places: list[tuple[str, exp.Expr | int | None]]
    if statement.target_columns is not None:
        places = [("INTO", c.offset) for c in statement.target_columns]
    else:
        places = [("AS SELECT", node) for node in request.selection.nodes]
    tag_place = statement.positions.get("tags", statement.positions.get("into"))
    return places + [("TAGS", tag_place)] * tags


def _composite_key(request: TargetRequest, columns: tuple[Column, ...]) -> str | None:
    """Return the composite key of a new table: asked for in the column list, or the source's own
    where rows pass through.
    """
    passing = not request.windowed and request.context.source.key_column
    if not _asks_for_key(request.statement) and not passing:
        return None
    if len(columns) < 2 or columns[1].type.kind not in _KEY_KINDS:
        kind = columns[1].type if len(columns) > 1 else "missing"
        refuse(
            request.statement,
            "E_TARGET_COLUMNS",
            request.name,
            what=f"a composite key is an integer or VARCHAR, the second column is {kind}",
            hint="choose INT, BIGINT (UNSIGNED) or VARCHAR",
        )
    return columns[1].name


def _asks_for_key(statement: CreateStream) -> bool:
    """Return True when the column list marks its second column as COMPOSITE KEY."""
    listed = statement.target_columns or ()
    marked = [i for i, c in enumerate(listed) if c.composite_key]
    if marked and marked != [1]:
        refuse(
            statement,
            "E_TARGET_COLUMNS",
            listed[marked[0]].offset,
            what="COMPOSITE KEY belongs to the second column",
            hint="put that column second",
        )
    return bool(marked)

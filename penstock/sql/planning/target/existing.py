"""A result table that exists: outputs mapped to its columns and tags."""

from __future__ import annotations

from penstock.sql.plan import Output, Target
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.target.request import PlannedTarget, TargetRequest, count_mismatch
from penstock.sql.planning.target.tags import plan_existing_tags
from penstock.sql.planning.view import TableDef
from penstock.sql.statements import TargetColumn

#: longest value that is converted to another type
MAX_CONVERTED_BYTES = 4096


def plan_existing(
    request: TargetRequest, outputs: tuple[Output, ...], subtable: str | None, table: TableDef
) -> PlannedTarget:
    """Map the outputs to the columns and tags of *table*."""
    _check_usable(request, table)
    column_of = _match_columns(request, outputs, table)
    expressions = {o.name: o.sql for o in outputs}
    filled = [
        (c.name, expressions[o] if o else None)
        for c, o in zip(table.columns, column_of, strict=True)
    ]
    tag_of = plan_existing_tags(request, table, filled)
    _check_conversions(request, outputs, table, column_of)
    _check_composite_key(request, table, column_of)
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


def _check_usable(request: TargetRequest, table: TableDef) -> None:
    """Refuse a table that is no supertable, the source itself or the target of another stream."""
    statement = request.statement
    if table.kind != "stable":
        kinds = {"child": "a child table", "plain": "a plain table", "virtual": "a virtual table"}
        refuse(
            statement,
            "E_TARGET_NOT_STABLE",
            request.name,
            table=request.shown,
            kind=kinds[table.kind],
        )
    if table.id == request.context.source.id:
        refuse(statement, "E_TARGET_IS_SOURCE", request.name, table=request.shown)
    _check_unused(request, table)
    if statement.tags is not None and any(t.type is not None for t in statement.tags):
        names = ", ".join(t.name for t in statement.tags)
        refuse(
            statement,
            "E_TARGET_EXISTS",
            statement.positions.get("tags"),
            table=request.shown,
            names=names,
        )


def _check_unused(request: TargetRequest, table: TableDef) -> None:
    """Refuse a table that another stream writes, or this one unless it is replaced."""
    statement = request.statement
    streams = list(request.view.streams_into(request.database, table.name))
    others = [s for s in streams if s.lower() != statement.stream.name.lower()]
    if not others and statement.or_replace:
        return
    for stream in others or streams:
        refuse(statement, "E_TARGET_IN_USE", request.name, stream=stream, table=request.shown)


def _check_composite_key(
    request: TargetRequest, table: TableDef, column_of: tuple[str | None, ...]
) -> None:
    statement = request.statement
    source = request.context.source
    if table.key_column and column_of[1] is None:
        refuse(
            statement,
            "E_TARGET_COLUMNS",
            request.name,
            what=f"{table.key_column}, the composite key of {request.shown}, is not filled",
            hint=f"add {table.key_column} to the column list",
        )
    if not request.windowed and source.key_column and not table.key_column:
        refuse(
            statement,
            "E_TARGET_COLUMNS",
            request.name,
            what=f"{source.shown} has a composite key, but {request.shown} has none",
            hint="choose a table with a composite key, or let the stream create one",
        )


def _match_columns(
    request: TargetRequest, outputs: tuple[Output, ...], table: TableDef
) -> tuple[str | None, ...]:
    """Return the output that fills each column of *table*."""
    listed = request.statement.target_columns
    if listed is None:
        _check_count(request, outputs, table)
        return tuple(o.name for o in outputs)
    if len(listed) != len(outputs):
        count_mismatch(request, len(listed), len(outputs), "the column list")
    filled = _match_names(request, listed, outputs, table)
    time = table.columns[0].name
    if time.lower() not in filled:
        refuse(
            request.statement,
            "E_TARGET_NO_TS",
            request.statement.positions.get("columns"),
            name=time,
            table=request.shown,
        )
    return tuple(filled.get(c.name.lower()) for c in table.columns)


def _match_names(
    request: TargetRequest,
    listed: tuple[TargetColumn, ...],
    outputs: tuple[Output, ...],
    table: TableDef,
) -> dict[str, str]:
    """Return the output that fills each of the *listed* columns, by its name in lower case."""
    filled: dict[str, str] = {}
    known = {c.name.lower() for c in table.columns}
    for column, output in zip(listed, outputs, strict=True):
        name = column.name.lower()
        if name not in known or name in filled:
            twice = f"{column.name} is named twice"
            missing = f"{request.shown} has no column {column.name}"
            refuse(
                request.statement,
                "E_TARGET_COLUMNS",
                column.offset,
                what=twice if name in filled else missing,
                hint="its columns are " + ", ".join(c.name for c in table.columns),
            )
        filled[name] = output.name
    return filled


def _check_count(request: TargetRequest, outputs: tuple[Output, ...], table: TableDef) -> None:
    """Refuse a select list without a column list that does not fill every column."""
    if len(outputs) == len(table.columns):
        return
    some = [c.name for c in table.columns[: len(outputs)]]
    refuse(
        request.statement,
        "E_TARGET_COLUMNS",
        request.name,
        what=(
            f"{request.shown} has {len(table.columns)} columns, the select list gives"
            f" {len(outputs)}"
        ),
        hint=f"say which ones they are: {request.name.name}({', '.join(some)})",
    )


def _check_conversions(
    request: TargetRequest,
    outputs: tuple[Output, ...],
    table: TableDef,
    column_of: tuple[str | None, ...],
) -> None:
    """Check conversions: possible between all types but to the time column, and of values that are
    not too long.
    """
    types = {o.name: o.type for o in outputs}
    nodes = {o.name: n for o, n in zip(outputs, request.selection.nodes, strict=True)}
    for i, (column, origin) in enumerate(zip(table.columns, column_of, strict=True)):
        if origin is None:
            continue
        given = types[origin]
        if given != column.type and given.sized and given.length > MAX_CONVERTED_BYTES:
            refuse(
                request.statement,
                "E_RESULT_TOO_LONG",
                nodes[origin],
                name=column.name,
                type=given,
                limit=MAX_CONVERTED_BYTES,
            )
        if i == 0 and given.kind != "TIMESTAMP":
            refuse(
                request.statement,
                "E_TARGET_COLUMNS",
                nodes[origin],
                what=f"{column.name} is the time column, {origin} is {given}",
                hint="fill it with _wstart or another time",
            )

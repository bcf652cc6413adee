"""SELECT TAGS: a row for each child table of a supertable, with or without rows, of its tags."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.relational.names import Refuse
from penstock.sql.relational.relations import Output, TableColumns, table_name
from penstock.sql.source_names import TBNAME

_OF_TAGS = "of_tags"
_TBNAME = "tbname"


def reads_tags(table: exp.Table) -> bool:
    """Tell if a bound table stands for its child tables, each with its tags."""
    return bool(table.meta.get(_OF_TAGS))


def check_source(select: exp.Select, refuse: Refuse) -> None:
    """Refuse SELECT TAGS from anything but one table."""
    source = select.args.get("from_")
    if source is not None and isinstance(source.this, exp.Table) and not select.args.get("joins"):
        return
    refuse(
        source.this if source is not None else select,
        "SELECT TAGS is of one supertable, or of one child table",
        code="E_UNSUPPORTED_QUERY",
        hint="join it as a subquery: FROM (SELECT TAGS tbname, … FROM supertable) t JOIN …",
    )


def only_tags(
    select: exp.Select, table: exp.Table, columns: TableColumns, refuse: Refuse
) -> TableColumns:
    """Return what names may mean in the tags of the child tables of *table*, and note that it
    stands for these. Raises SqlSemanticError: it has no tags, or a column is named.
    """
    name = table_name(table)
    if not columns.tags:
        refuse(
            table,
            f"{name} is no supertable: it has no tags",
            code="E_NOT_A_STABLE",
            hint="leave TAGS out to read its rows",
        )
    tags = [column for column in columns.columns if column.name.lower() in columns.tags]
    own = {column.name.lower() for column in columns.columns} - columns.tags
    for column in select.find_all(exp.Column):
        if column.name.lower() in own and column.find_ancestor(exp.Query) is select:
            known = ", ".join(tag.name for tag in tags)
            refuse(
                column,
                f"{column.name} is a column of the rows of {name}, and no tag",
                code="E_UNKNOWN_COLUMN",
                hint=f"SELECT TAGS knows tbname, {known}; leave TAGS out to read rows",
            )
    table.meta[_OF_TAGS] = True
    return TableColumns(
        (Output(_TBNAME, TBNAME, columns.precision), *tags),
        columns.precision,
        stored=False,
        database=columns.database,
        tags=columns.tags,
        hidden=frozenset((_TBNAME,)),
    )

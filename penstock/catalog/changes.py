"""What DDL does to the catalog, as pure decisions: catalog and arguments in, entries to write or a
CatalogError out.

Here are the rules: which names and columns are possible, which ALTERs keep old records readable,
and that nothing a stream uses is dropped or changed under it. Nothing is written here;
`CatalogWriter.commit(change.puts, change.removes)` does that.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

from penstock.catalog.model import (
    FOREIGN,
    Child,
    Database,
    Entry,
    External,
    Snode,
    StreamEntry,
    StreamStatus,
    Table,
    TableKind,
    TableVersion,
    View,
)
from penstock.catalog.stored import carried
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.names import MAX_NAME_BYTES, ingest_topic
from penstock.sql.plan import Column, Duration, Precision, StreamPlan

#: gives an id that nothing else has or had (`CatalogWriter.new_id`)
NewId = Callable[[], int]
MAX_COLUMNS = 4096
MAX_TAGS = 128
MAX_PARTITIONS = 1024
MAX_COLUMN_NAME = 64
#: rows carry these beside their columns, on the wire or inside the operator
RESERVED_COLUMNS = frozenset(
    {"tbname", "op", "_op", "_offset", "_now", "_step", "_record", "_write", "_reason", "_late"}
)
_DATABASE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_KEY_KINDS = ("INT", "INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "VARCHAR")


@dataclass(frozen=True)
class Change:
    """Entries to write and entries to remove; both empty when IF [NOT] EXISTS made the statement do
    nothing.
    """

    puts: tuple[Entry, ...] = ()
    removes: tuple[Entry, ...] = ()


def _refuse(code: str, message: str, *, detail: str = "", hint: str = "") -> NoReturn:
    raise CatalogError(message, code=code, detail=detail, hint=hint)


# ---------------------------------------------------------------- databases


def create_database(
    catalog: Catalog,
    new_id: NewId,
    name: str,
    *,
    precision: Precision = "ms",
    keep: Duration | None = None,
    partitions: int = 4,
    max_ahead: Duration | None = None,
    replica: int = 1,
    dot_to_underscore: bool = False,
    if_not_exists: bool = False,
) -> Change:
    if catalog.database(name) is not None:
        if if_not_exists:
            return Change()
        _refuse("E_DATABASE_EXISTS", f"database {name} exists already")
    if not _DATABASE_NAME.match(name):
        _refuse(
            "E_BAD_NAME",
            f"{name!r} cannot be a database's name",
            hint="letters, digits and underscores, at most 64",
        )
    _check_partitions(partitions)
    _check_keep(keep)
    made = Database(
        new_id(),
        name,
        precision,
        keep,
        partitions,
        replica=replica,
        dot_to_underscore=dot_to_underscore,
    )
    return Change((made if max_ahead is None else dataclasses.replace(made, max_ahead=max_ahead),))


def alter_database(
    catalog: Catalog,
    name: str,
    *,
    keep: Duration | None = None,
    max_ahead: Duration | None = None,
    dot_to_underscore: bool | None = None,
) -> Change:
    """KEEP, MAX_AHEAD and DOT_TO_UNDERSCORE may change; precision is for ever, because records
    already written depend on it. For partitions see `penstock.catalog.generations`.
    """
    database = _database(catalog, name)
    _check_keep(keep)
    dots = database.dot_to_underscore if dot_to_underscore is None else dot_to_underscore
    changed = dataclasses.replace(
        database,
        keep=keep or database.keep,
        max_ahead=max_ahead or database.max_ahead,
        dot_to_underscore=dots,
    )
    return Change((changed,))


def drop_database(catalog: Catalog, name: str, *, if_exists: bool = False) -> Change:
    """Drop it with its tables and with its streams, unless a stream of another database uses one of
    its tables.
    """
    database = catalog.database(name)
    if database is None:
        if if_exists:
            return Change()
        _refuse("E_NO_DATABASE", f"there is no database {name}")
    tables = catalog.tables(name)
    streams = catalog.streams(name)
    inside = {s.id for s in streams}
    for table in tables:
        _refuse_used(
            table,
            "drop",
            [
                s
                for s in (*catalog.readers_of(table.id), *catalog.writers_of(table.id))
                if s.id not in inside
            ],
        )
    children = [c for t in tables if t.tags for c in catalog.children(t.id)]
    views = catalog.views(name)
    externals = catalog.externals(name)
    known = {v.id for v in views}
    for used in [*((t.id, t.name) for t in tables), *((e.id, e.name) for e in externals)]:
        others = [v for v in catalog.views_of(used[0]) if v.id not in known]
        if others:
            _refuse(
                "E_IN_USE",
                f"cannot drop {used[1]}: view {others[0].database}.{others[0].name} uses it",
                hint="drop the view first",
            )
    return Change(removes=(*streams, *views, *externals, *children, *tables, database))


# ---------------------------------------------------------------- tables


def create_table(
    catalog: Catalog,
    new_id: NewId,
    database: str,
    name: str,
    columns: Iterable[Column],
    tags: Iterable[Column] = (),
    *,
    kind: TableKind | None = None,
    key_column: str | None = None,
    own_topic: bool = False,
    partitions: int | None = None,
    keep: Duration | None = None,
    comment: str = "",
    result_of: int | None = None,
    if_not_exists: bool = False,
) -> Change:
    """A supertable (with tags) or a plain table (without).

    Args:
        catalog: what there is.
        new_id: gives the ids of the table and of its first schema.
        database: where it goes.
        name: of the new table.
        columns: the first is the time column.
        tags: of a supertable.
        kind: None: by whether there are tags.
        key_column: second part of a composite primary key.
        own_topic: WITH (topic='own'); `partitions` is for that.
        partitions: of its own topic.
        keep: how long its rows live; None: what the database says.
        comment: anything.
        result_of: id of the stream that it is made for.
        if_not_exists: an existing one is no error.
    """
    base = _database(catalog, database)
    _refuse_external(catalog, base.name, name)
    if (found := catalog.table(database, name) or catalog.child(database, name)) is not None:
        if if_not_exists:
            return Change()
        _refuse("E_TABLE_EXISTS", f"table {base.name}.{found.name} exists already")
    _check_table_name(name)
    columns = tuple(columns)
    tags = tuple(tags)
    if partitions is not None and not own_topic:
        _refuse(
            "E_BAD_OPTION",
            "partitions belong to a topic of its own",
            hint="write WITH (topic='own', partitions=…)",
        )
    _check_partitions(partitions or base.partitions)
    _check_keep(keep)
    _check_columns(columns, tags)
    if key_column is not None:
        _check_key(columns, key_column)
    table = Table(
        id=new_id(),
        database=base.name,
        name=name,
        kind=kind or ("stable" if tags else "plain"),
        topic=ingest_topic(base.name, name) if own_topic else base.topic,
        partitions=partitions or base.partitions,
        precision=base.precision,
        versions=(TableVersion(new_id(), columns, tags),),
        key_column=key_column,
        result_of=result_of,
        keep=keep,
        options={"comment": comment} if comment else {},
    )
    return Change((table,))


def create_foreign(
    catalog: Catalog,
    new_id: NewId,
    database: str,
    name: str,
    columns: Iterable[Column],
    message_id: Column,
    option: str,
) -> Change:
    """A plain table that is filled from a topic of another Kafka; *message_id* becomes its second
    column and part of its key.
    """
    given = tuple(columns)
    if any(c.name.lower() == message_id.name for c in given):
        _refuse(
            "E_RESERVED_NAME",
            f"{message_id.name} is a name that rows carry anyway",
            hint="choose another name",
        )
    if catalog.external(database, name) is not None:
        _refuse("E_STREAM_EXISTS", f"external stream {database}.{name} exists already")
    made = create_table(
        catalog,
        new_id,
        database,
        name,
        (given[0], message_id, *given[1:]),
        kind="plain",
        key_column=message_id.name,
        own_topic=True,
        partitions=1,
    )
    return Change(
        tuple(
            dataclasses.replace(t, options={FOREIGN: option})
            for t in made.puts
            if isinstance(t, Table)
        )
    )


def create_child(
    catalog: Catalog,
    new_id: NewId,
    database: str,
    name: str,
    stable: str,
    tags: Mapping[str, object],
    *,
    if_not_exists: bool = False,
) -> Change:
    """A child table of *stable*; tags that are not given are NULL."""
    parent = _table(catalog, database, stable)
    if not parent.tags:
        _refuse("E_NOT_A_STABLE", f"{stable} is no supertable, so no table can be made USING it")
    if (found := catalog.table(database, name) or catalog.child(database, name)) is not None:
        if if_not_exists and isinstance(found, Child) and found.stable_id == parent.id:
            return Change()
        _refuse("E_TABLE_EXISTS", f"table {parent.database}.{found.name} exists already")
    _check_table_name(name)
    return Change(
        (Child(new_id(), parent.database, parent.id, name, _tag_values(parent, tags, ())),)
    )


def set_tags(
    catalog: Catalog,
    new_id: NewId,
    database: str,
    name: str,
    stable: str,
    tags: Mapping[str, object],
) -> Change:
    """ALTER TABLE child SET TAG; a child that only rows have made known so far gets an entry of its
    own.
    """
    parent = _table(catalog, database, stable)
    child = catalog.child(database, name) or Child(new_id(), parent.database, parent.id, name)
    return Change((dataclasses.replace(child, tags=_tag_values(parent, tags, child.tags)),))


def drop_table(catalog: Catalog, database: str, name: str, *, if_exists: bool = False) -> Change:
    """Drop a supertable with its child tables, a plain table or a child table, unless a stream uses
    it.
    """
    child = catalog.child(database, name)
    if child is not None:
        return _drop_child(catalog, child)
    table = catalog.table(database, name)
    if table is None:
        if if_exists:
            return Change()
        _refuse("E_NO_TABLE", f"there is no table {database}.{name}")
    inlets = [t for t in catalog.tables(database) if t.options.get("inlet_of") == str(table.id)]
    users = [*catalog.readers_of(table.id), *catalog.writers_of(table.id)]
    _refuse_used(
        table,
        "drop",
        users + [s for t in inlets for s in (*catalog.readers_of(t.id), *catalog.writers_of(t.id))],
    )
    _refuse_viewed(catalog, table)
    gone = [e for t in (*inlets, table) for e in (*(catalog.children(t.id) if t.tags else ()), t)]
    return Change(removes=tuple(gone))


def drop_child(catalog: Catalog, new_id: NewId, database: str, name: str, stable: str) -> Change:
    """Drop a child table. One that only rows have made known gets an entry that goes at once: so
    every process hears of it.
    """
    parent = _table(catalog, database, stable)
    child = catalog.child(database, name)
    if child is not None:
        return _drop_child(catalog, child)
    child = Child(new_id(), parent.database, parent.id, name)
    return Change((child,), _drop_child(catalog, child).removes)


def _drop_child(catalog: Catalog, child: Child) -> Change:
    _refuse_used(
        child,
        "drop",
        [s for s in catalog.readers_of(child.stable_id) if reads_child(s.plan, child.name)],
    )
    return Change(removes=(child,))


def reads_child(plan: StreamPlan, name: str) -> bool:
    """Whether a stream over a supertable needs its child table *name* to stay."""
    if plan.source.kind == "virtual":
        return any(m.name.lower() == name.lower() for m in plan.source.members)
    return (plan.source.child or "").lower() == name.lower()


def set_table_options(
    catalog: Catalog,
    database: str,
    name: str,
    *,
    keep: Duration | None = None,
    comment: str | None = None,
) -> Change:
    table = _table(catalog, database, name)
    _check_keep(keep)
    options = table.options if comment is None else {**table.options, "comment": comment}
    return Change((dataclasses.replace(table, keep=keep or table.keep, options=options),))


# --------------------------------------------- ALTER of columns and tags: every one is a new schema


def add_column(
    catalog: Catalog, new_id: NewId, database: str, name: str, column: Column, *, tag: bool = False
) -> Change:
    """ADD COLUMN or ADD TAG: NULL in everything written before."""
    table = _table(catalog, database, name)
    _refuse_frozen(catalog, table)
    if tag:
        _needs_tags(table)
    columns = table.columns if tag else (*table.columns, column)
    return _altered(table, new_id, columns, (*table.tags, column) if tag else table.tags)


def drop_column(
    catalog: Catalog, new_id: NewId, database: str, name: str, column: str, *, tag: bool = False
) -> Change:
    """DROP COLUMN or DROP TAG: gone from everything written before, too."""
    table = _table(catalog, database, name)
    _refuse_frozen(catalog, table)
    found = _column(table, column, tag)
    if found == table.columns[0] or found.name == table.key_column:
        _refuse("E_KEY_COLUMN", f"{found.name} is part of the primary key and cannot be dropped")
    _refuse_column_used(catalog, table, found, "drop")
    if tag and len(table.tags) == 1:
        _refuse("E_LAST_TAG", f"{found.name} is the only tag of {table.name}")
    change = _altered(
        table, new_id, _without(table.columns, found, not tag), _without(table.tags, found, tag)
    )
    if not tag:
        return change
    at = table.tags.index(found)
    children = (
        dataclasses.replace(c, tags=c.tags[:at] + c.tags[at + 1 :])
        for c in catalog.children(table.id)
    )
    return Change((*change.puts, *children))


def modify_column(
    catalog: Catalog, new_id: NewId, database: str, name: str, column: Column, *, tag: bool = False
) -> Change:
    """MODIFY COLUMN or TAG: VARCHAR, NCHAR and VARBINARY may become longer; nothing else keeps old
    records right.
    """
    table = _table(catalog, database, name)
    _refuse_frozen(catalog, table)
    old = _column(table, column.name, tag)
    if not (
        old.type.sized
        and old.type.kind == column.type.kind
        and column.type.length > old.type.length
    ):
        _refuse(
            "E_BAD_MODIFY",
            f"{old.name} is {old.type} and cannot become {column.type}",
            hint=(
                "VARCHAR, NCHAR and VARBINARY can be made longer; for anything else add a new"
                " column"
            ),
        )
    new = Column(old.name, column.type)
    columns, tags = (
        tuple(new if c == old else c for c in part) for part in (table.columns, table.tags)
    )
    return _altered(table, new_id, table.columns if tag else columns, tags if tag else table.tags)


def rename_tag(
    catalog: Catalog, new_id: NewId, database: str, name: str, tag: str, new_name: str
) -> Change:
    table = _table(catalog, database, name)
    _refuse_frozen(catalog, table)
    old = _column(table, tag, True)
    _refuse_column_used(catalog, table, old, "rename")
    tags = tuple(Column(new_name, old.type) if t == old else t for t in table.tags)
    return _altered(table, new_id, table.columns, tags, ((old.name, new_name),))


def _refuse_frozen(catalog: Catalog, table: Table) -> None:
    """The shape of a virtual table stays as long as a stream reads it."""
    if table.kind == "virtual":
        _refuse_used(table, "change", catalog.readers_of(table.id))


def _altered(
    table: Table,
    new_id: NewId,
    columns: tuple[Column, ...],
    tags: tuple[Column, ...],
    renamed: tuple[tuple[str, str], ...] = (),
) -> Change:
    _check_columns(columns, tags)
    version = TableVersion(new_id(), columns, tags, renamed)
    version = dataclasses.replace(version, stored=carried(table.versions, version))
    return Change((dataclasses.replace(table, versions=(*table.versions, version)),))


# ---------------------------------------------------------------- streams


def create_stream(
    catalog: Catalog,
    plan: StreamPlan,
    *,
    created: int,
    if_not_exists: bool = False,
    replaces: StreamEntry | None = None,
    maker: str = "",
) -> Change:
    """The entry of a planned stream, whose ids (its own and its target table's) are already in the
    plan, in the place of another.
    """
    if catalog.stream(plan.database, plan.name) is not None and replaces is None:
        if if_not_exists:
            return Change()
        _refuse("E_STREAM_EXISTS", f"stream {plan.database}.{plan.name} exists already")
    _database(catalog, plan.database)
    _check_table_name(plan.name)
    source = catalog.table_by_id(plan.source.table_id)
    if source is None:
        _refuse("E_NO_TABLE", f"there is no table {plan.source.database}.{plan.source.table}")
    for name in dict.fromkeys((plan.database, source.database)):
        home = catalog.database(name)
        if home is not None and home.replica > 1 and not catalog.snodes():
            _refuse(
                "E_NO_SNODE",
                f"database {home.name} has {home.replica} replicas, but there is no snode to keep"
                " the stream's state",
                hint="CREATE SNODE ON DNODE 1 first (SHOW DNODES lists nodes)",
            )
    if any(_reaches(catalog, plan.target.table_id, goal) for goal in plan.source.table_ids):
        _refuse(
            "E_STREAM_CYCLE",
            f"stream {plan.name} would read its own results",
            detail=f"{plan.target.table} leads to {source.name}",
        )
    return Change(
        (StreamEntry(plan.stream_id, plan, created=created, maker=maker),),
        () if replaces is None else (replaces,),
    )


def drop_stream(catalog: Catalog, database: str, name: str, *, if_exists: bool = False) -> Change:
    """The result table stays."""
    stream = catalog.stream(database, name)
    if stream is None:
        if if_exists:
            return Change()
        _refuse("E_NO_STREAM", f"there is no stream {database}.{name}")
    return Change(removes=(stream,))


def set_stream_status(
    catalog: Catalog, database: str, name: str, status: StreamStatus, reason: str = ""
) -> Change:
    stream = catalog.stream(database, name)
    if stream is None:
        _refuse("E_NO_STREAM", f"there is no stream {database}.{name}")
    return Change((dataclasses.replace(stream, status=status, reason=reason),))


# ---------------------------------------------------------------- snodes


def create_snode(catalog: Catalog, new_id: NewId, dnode: int, *, created: int) -> Change:
    if catalog.snode(dnode) is not None:
        _refuse("E_SNODE_EXISTS", f"there is a snode on dnode {dnode} already")
    return Change((Snode(new_id(), dnode, created),))


def drop_snode(catalog: Catalog, dnode: int) -> Change:
    """Its backups stay where they are."""
    found = catalog.snode(dnode)
    if found is None:
        _refuse("E_NO_SNODE", f"there is no snode on dnode {dnode}", hint="SHOW SNODES lists them")
    return Change(removes=(found,))


def _reaches(catalog: Catalog, start: int, goal: int) -> bool:
    """Whether results in table *start* flow into table *goal* by the streams there are."""
    seen = set[int]()
    todo = [start]
    while todo:
        table = todo.pop()
        if table == goal:
            return True
        if table not in seen:
            seen.add(table)
            todo += [s.plan.target.table_id for s in catalog.fed_by(table)]
    return False


# ---------------------------------------------------------------- other deployments


def create_external(catalog: Catalog, entry: External) -> Change:
    """A name of ours for a table of another deployment. Its schema has been looked up."""
    _database(catalog, entry.database)
    _check_table_name(entry.name)
    if catalog.external(entry.database, entry.name) is not None:
        _refuse("E_STREAM_EXISTS", f"external stream {entry.database}.{entry.name} exists already")
    for kind, there in (
        ("table", catalog.table),
        ("table", catalog.child),
        ("stream", catalog.stream),
        ("view", catalog.view),
    ):
        if there(entry.database, entry.name) is not None:
            _refuse("E_TABLE_EXISTS", f"{kind} {entry.database}.{entry.name} exists already")
    _check_columns(entry.columns, entry.tags)
    return Change((entry,))


def drop_external(catalog: Catalog, database: str, name: str, *, if_exists: bool = False) -> Change:
    """What lies in the other deployment stays."""
    entry = catalog.external(database, name)
    if entry is None:
        if if_exists:
            return Change()
        _refuse("E_NO_STREAM", f"there is no external stream {database}.{name}")
    _refuse_viewed(catalog, entry)
    return Change(removes=(entry,))


def create_view(catalog: Catalog, view: View) -> Change:
    """The entry of a view whose SELECT has been checked against source and target."""
    _database(catalog, view.database)
    _check_table_name(view.name)
    if catalog.view(view.database, view.name) is not None:
        _refuse("E_STREAM_EXISTS", f"view {view.database}.{view.name} exists already")
    if _pumps_into(catalog, view.target_id, view.source_id):
        _refuse("E_STREAM_CYCLE", f"view {view.name} would read its own rows")
    return Change((view,))


def drop_view(catalog: Catalog, database: str, name: str, *, if_exists: bool = False) -> Change:
    """The target stays, unless it was made for the view and nothing else uses it."""
    view = catalog.view(database, name)
    if view is None:
        if if_exists:
            return Change()
        _refuse("E_NO_VIEW", f"there is no materialized view {database}.{name}")
    table = catalog.table_by_id(view.target_id) if view.owns_target else None
    if table is None:
        return Change(removes=(view,))
    _refuse_used(table, "drop", [*catalog.readers_of(table.id), *catalog.writers_of(table.id)])
    others = [v for v in catalog.views_of(table.id) if v.id != view.id]
    if others:
        _refuse(
            "E_IN_USE",
            f"cannot drop {view.name}: view {others[0].name} uses its rows",
            hint="drop that view first",
        )
    return Change(
        removes=(view, *(catalog.children(table.id) if table.kind == "stable" else ()), table)
    )


def set_view_status(
    catalog: Catalog, database: str, name: str, status: Literal["running", "paused"]
) -> Change:
    view = catalog.view(database, name)
    if view is None:
        _refuse("E_NO_VIEW", f"there is no materialized view {database}.{name}")
    again = view.on_error == "stop" and status == "running"
    return Change((dataclasses.replace(view, status=status, resumed=view.resumed + again),))


def _pumps_into(catalog: Catalog, start: int, goal: int) -> bool:
    """Whether rows of *start* flow into *goal* by the streams and views there are."""
    seen = set[int]()
    todo = [start]
    while todo:
        at = todo.pop()
        if at == goal:
            return True
        if at not in seen:
            seen.add(at)
            todo += [s.plan.target.table_id for s in catalog.readers_of(at)]
            todo += [v.target_id for v in catalog.views() if v.source_id == at]
    return False


def _refuse_viewed(catalog: Catalog, entry: Table | External) -> None:
    views = catalog.views_of(entry.id)
    if views:
        listed = ", ".join(f"{v.database}.{v.name}" for v in views)
        _refuse(
            "E_IN_USE",
            f"cannot drop {entry.name}: view {listed} uses it",
            hint="drop the view first",
        )


def _refuse_external(catalog: Catalog, database: str, name: str) -> None:
    if catalog.external(database, name) is not None:
        _refuse("E_TABLE_EXISTS", f"external stream {database}.{name} exists already")


# ---------------------------------------------------------------- checks


def _database(catalog: Catalog, name: str) -> Database:
    found = catalog.database(name)
    if found is None:
        _refuse("E_NO_DATABASE", f"there is no database {name}")
    return found


def _table(catalog: Catalog, database: str, name: str) -> Table:
    _database(catalog, database)
    found = catalog.table(database, name)
    if found is None:
        if catalog.child(database, name) is not None:
            _refuse(
                "E_CHILD_TABLE",
                f"{name} is a child table",
                hint="its columns and tags are its supertable's",
            )
        _refuse("E_NO_TABLE", f"there is no table {database}.{name}")
    return found


def _column(table: Table, name: str, tag: bool) -> Column:
    for column in table.tags if tag else table.columns:
        if column.name.lower() == name.lower():
            return column
    _refuse("E_NO_COLUMN", f"{table.name} has no {'tag' if tag else 'column'} {name}")


def _without(columns: tuple[Column, ...], gone: Column, here: bool) -> tuple[Column, ...]:
    return tuple(c for c in columns if c != gone) if here else columns


def _needs_tags(table: Table) -> None:
    if not table.tags:
        _refuse("E_NOT_A_STABLE", f"{table.name} is no supertable and has no tags")


def _tag_values(
    table: Table, given: Mapping[str, object], before: tuple[object, ...]
) -> tuple[object, ...]:
    values = {t.name.lower(): v for t, v in zip(table.tags, before, strict=False)}
    for name, value in given.items():
        values[_column(table, name, True).name.lower()] = value
    return tuple(values.get(t.name.lower()) for t in table.tags)


def _check_table_name(name: str) -> None:
    if not name or len(name.encode()) > MAX_NAME_BYTES or "." in name or not name.isprintable():
        _refuse(
            "E_BAD_NAME",
            f"{name!r} cannot be a table's or stream's name",
            hint=f"1 to {MAX_NAME_BYTES} bytes, without dots",
        )


def _check_partitions(partitions: int) -> None:
    if not 1 <= partitions <= MAX_PARTITIONS:
        _refuse(
            "E_BAD_OPTION",
            f"{partitions} partitions are not possible",
            hint=f"1 to {MAX_PARTITIONS}",
        )


def _check_keep(keep: Duration | None) -> None:
    if keep is not None and keep.ticks("ms") < 86_400_000:
        _refuse("E_BAD_OPTION", f"KEEP {keep} is too short", hint="at least one day: 1d")


def _check_columns(columns: tuple[Column, ...], tags: tuple[Column, ...]) -> None:
    if not columns or columns[0].type.kind != "TIMESTAMP":
        _refuse("E_NO_TIME_COLUMN", "the first column must be a TIMESTAMP")
    if len(columns) + len(tags) > MAX_COLUMNS or len(tags) > MAX_TAGS:
        _refuse(
            "E_TOO_MANY_COLUMNS", f"at most {MAX_COLUMNS} columns and tags, of them {MAX_TAGS} tags"
        )
    seen: set[str] = set()
    for column in (*columns, *tags):
        name = column.name.lower()
        if not name or len(name.encode()) > MAX_COLUMN_NAME:
            _refuse(
                "E_BAD_NAME",
                f"{column.name!r} cannot be a column's name",
                hint=f"1 to {MAX_COLUMN_NAME} bytes",
            )
        if name in RESERVED_COLUMNS:
            _refuse(
                "E_RESERVED_NAME",
                f"{column.name} is a name that rows carry anyway",
                hint="choose another name",
            )
        if name in seen:
            _refuse("E_DUPLICATE_COLUMN", f"{column.name} is there twice")
        seen.add(name)
    if any(c.type.kind == "JSON" for c in columns) or (
        any(t.type.kind == "JSON" for t in tags) and len(tags) > 1
    ):
        _refuse("E_BAD_JSON", "JSON is possible as the only tag of a supertable")


def _check_key(columns: tuple[Column, ...], key: str) -> None:
    if len(columns) < 2 or columns[1].name != key or columns[1].type.kind not in _KEY_KINDS:
        _refuse(
            "E_BAD_KEY",
            f"{key} cannot be part of the primary key",
            hint="the second column, an integer or a VARCHAR",
        )


def _refuse_used(entry: Table | Child, what: str, streams: list[StreamEntry]) -> None:
    if streams:
        names = ", ".join(dict.fromkeys(f"{s.database}.{s.name}" for s in streams))
        _refuse(
            "E_IN_USE",
            f"cannot {what} {entry.name}: stream {names} uses it",
            hint="drop the stream first",
        )


def _refuse_column_used(catalog: Catalog, table: Table, column: Column, what: str) -> None:
    word = re.compile(rf"(?<![\w$]){re.escape(column.name)}(?![\w$])", re.IGNORECASE)
    users = [
        s for s in catalog.readers_of(table.id) if any(word.search(text) for text in _texts(s.plan))
    ]
    for stream in catalog.writers_of(table.id):
        target = stream.plan.target
        filled = [
            *zip(target.columns, target.column_of, strict=True),
            *zip(target.tags, target.tag_of, strict=True),
        ]
        if any(
            c.name.lower() == column.name.lower() and source is not None for c, source in filled
        ):
            users.append(stream)
    if users:
        names = ", ".join(dict.fromkeys(f"{s.database}.{s.name}" for s in users))
        _refuse(
            "E_IN_USE",
            f"cannot {what} {table.name}.{column.name}: stream {names} uses it",
            hint="drop the stream first",
        )


def _texts(plan: StreamPlan) -> list[str]:
    """Every expression of the plan; more than it reads of the source is better than less."""
    window = plan.window
    found = [
        plan.where,
        *(k.sql for k in plan.keys),
        *(a.sql for a in plan.aggregates),
        *(o.sql for o in plan.outputs),
    ]
    found += [getattr(window, part, None) for part in ("sql", "start_sql", "end_sql")]
    return [text for text in found if text]

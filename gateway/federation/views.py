"""Materialized views: CREATE, DROP, SYSTEM PAUSE and RESUME.

What runs afterwards is the federation service's business, which follows the catalog.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

from sqlglot import exp

from gateway.ddl.definer import Definer
from gateway.federation.view_start import ViewStart
from penstock.catalog import changes
from penstock.catalog.changes import Change
from penstock.catalog.model import External, Table, View
from penstock.link import external
from penstock.link.description import Description, require_log
from penstock.link.selection import Selection, check, compile_selection
from penstock.runtime.clock import Clock, milliseconds
from penstock.sql import statements as st
from penstock.sql.dialect import to_sql
from penstock.sql.plan import Column

_TIME_NAMES = ("_tp_time", "_rowts", "_c0")


class MaterializedViews:
    """Runs in the DDL thread."""

    def __init__(self, definer: Definer, start: ViewStart, clock: Clock) -> None:
        self._definer = definer
        self._start = start
        self._clock = clock

    def create(self, statement: st.CreateView, database: str, timezone: str) -> None:
        """Check SELECT, source and target; note in the catalog where rows begin."""
        catalog = self._definer.catalog
        if catalog.view(database, statement.view.name) is not None and statement.if_not_exists:
            return
        inner = st.Query(
            source=statement.source, start=statement.start, end=statement.end, query=statement.query
        )
        if not isinstance(statement.query, exp.Select):
            raise statement.error("a view is one SELECT", code="E_UNSUPPORTED_QUERY")
        select, node = check(inner, statement.query)
        source = self._entry(
            statement,
            st.Name(node.name, node.db or None, node.meta.get("start", statement.start)),
            database,
        )
        sql = to_sql(select)
        description = _description(source)
        selection = compile_selection(sql, description, timezone, self._clock.now())
        view_id = self._definer.new_id()
        puts: tuple[Table, ...] = ()
        if statement.target is None:
            made = self._own_target(statement, database, description, selection)
            puts = (made,)
            target_id = made.id
            target = Description.of(made)
        else:
            found = self._entry(statement, statement.target, database, writing=True)
            target_id = found.id
            target = _description(found)
        _check_target(statement, description, selection, target)
        begin = self._start.tokens(source, earliest=_rewinds(select))
        home = catalog.database(database)
        view = View(
            view_id,
            home.name if home is not None else database,
            statement.view.name,
            sql,
            source.id,
            target_id,
            bool(puts),
            begin=begin,
            created=milliseconds(self._clock),
            timezone=timezone,
            on_error=statement.on_error or "retry",
        )
        change = changes.create_view(catalog, view)
        self._definer.commit(Change((*puts, *change.puts)))

    def _own_target(
        self, statement: st.CreateView, database: str, source: Description, selection: Selection
    ) -> Table:
        """Make the table of a view without INTO: what is selected, behind the source's time, with
        the source's tags.
        """
        chosen = {c.name.lower(): c for c in selection.outputs}
        tags = tuple(chosen.pop(t.name.lower(), t) for t in source.tags)
        time = chosen.pop(source.time_column.lower(), source.columns[0])
        key = (
            source.key_column
            if source.key_column is not None and source.key_column.lower() in chosen
            else None
        )
        rest = list(chosen.values())
        if key is not None:
            rest.sort(key=lambda c: c.name.lower() != key.lower())
        home = self._definer.catalog.database(database)
        precision = home.precision if home is not None else source.precision
        if precision != source.precision:
            raise statement.error(
                f"times of {source.shown} are in {source.precision}, those of {database} in"
                f" {precision}",
                code="E_BAD_OPTION",
                hint="write INTO a table of a database of the same precision",
            )
        made = changes.create_table(
            self._definer.catalog,
            self._definer.new_id,
            database,
            statement.view.name,
            (time, *rest),
            tags,
            key_column=key,
        )
        (table,) = made.puts
        assert isinstance(table, Table)
        return table

    def _entry(
        self, statement: st.Statement, name: st.Name, database: str, *, writing: bool = False
    ) -> Table | External:
        """Return a table, an external stream, or the target of a view."""
        catalog = self._definer.catalog
        home = name.database or database
        found: Table | External | None = catalog.table(home, name.name) or catalog.external(
            home, name.name
        )
        if found is None and (view := catalog.view(home, name.name)) is not None:
            target = catalog.by_id(view.target_id)
            found = target if isinstance(target, Table | External) else None
        if found is None:
            raise statement.error(
                f"there is no table or external stream {home}.{name.name}", name, code="E_NO_TABLE"
            )
        if isinstance(found, Table):
            require_log(found, writing=writing)
        return found

    def steer(self, statement: st.SteerView, database: str) -> Callable[[], None] | None:
        """Note it in the catalog; of a pause, return what waits until it has come about."""
        catalog = self._definer.catalog
        name = statement.view.name
        view = catalog.view(database, name)
        if statement.action == "pause":
            self._set_status(database, name, "paused")
            if view is None or not self._definer.watch.runs("federation"):
                return None
            return partial(self._definer.watch.until_paused, view.id)
        if view is not None and view.status == "paused":
            self._definer.watch.forget_pause(view.id)
        self._set_status(database, name, "running")
        return None

    def _set_status(self, database: str, name: str, status: Literal["paused", "running"]) -> None:
        self._definer.decide(lambda c, _: changes.set_view_status(c, database, name, status))

    def drop(self, database: str, name: str, if_exists: bool) -> None:
        """DROP MATERIALIZED VIEW; its target stays unless it was made for it."""
        self._definer.decide(lambda c, _: changes.drop_view(c, database, name, if_exists=if_exists))


def _description(entry: Table | External) -> Description:
    return Description.of(entry) if isinstance(entry, Table) else external.description_of(entry)


def _check_target(
    statement: st.CreateView, source: Description, selection: Selection, target: Description
) -> None:
    """Raise SqlSemanticError unless every selected column has its place, and rows have a time and
    (for a supertable) a child table.
    """
    _check_columns(statement, selection, target)
    key = None if target.numbered else target.key_column
    if key is not None and key.lower() not in {c.name.lower() for c in selection.outputs}:
        raise statement.error(
            f"the key column {key} of {target.shown} is not selected", code="E_TARGET_COLUMNS"
        )
    if source.is_stable and not target.is_stable:
        raise statement.error(
            f"{source.shown} has child tables and {target.shown} has none",
            code="E_TARGET_NOT_STABLE",
            detail="rows of one time from different child tables would replace each other",
            hint="make the target a supertable",
        )


def _check_columns(statement: st.CreateView, selection: Selection, target: Description) -> None:
    """Raise SqlSemanticError unless every selected column has its place."""
    known = {c.name.lower(): c for c in target.given}
    for column in selection.outputs:
        place = known.get(column.name.lower())
        if place is None:
            raise statement.error(
                f"{target.shown} has no column {column.name}",
                code="E_TARGET_COLUMNS",
                hint="it takes " + ", ".join(c.name for c in target.given),
            )
        if not _fits(column, place):
            raise statement.error(
                f"{column.name} is {column.type} here and {place.type} in {target.shown}",
                code="E_TARGET_COLUMNS",
            )


def _fits(column: Column, place: Column) -> bool:
    """Tell whether values of *column* can go into *place*."""
    given = column.type
    wanted = place.type
    if wanted.kind == given.kind:
        return True
    return (wanted.numeric and given.numeric) or (wanted.text and given.text)


def _rewinds(select: exp.Select) -> bool:
    """Tell whether WHERE looks back: it has a lower bound of the time."""
    where = select.args.get("where")
    if where is None:
        return False
    for node in where.find_all(exp.GT, exp.GTE, exp.Between):
        if isinstance(node.this, exp.Column) and node.this.name.lower() in _TIME_NAMES:
            return True
    return any(
        isinstance(node.expression, exp.Column) and node.expression.name.lower() in _TIME_NAMES
        for node in where.find_all(exp.LT, exp.LTE)
    )

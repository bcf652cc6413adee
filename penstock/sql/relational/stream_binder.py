"""Binds the SELECT of a stream, which a window clause of a query has, too: FROM first, then the
keys of PARTITION BY, whose names all else may use, the window, the rows and the select list.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.sql import nodes
from penstock.sql.dialect import to_sql
from penstock.sql.relational.bindings import Binding, note
from penstock.sql.relational.lowering import lower_select, note_columns
from penstock.sql.relational.query_plan import StreamSelect
from penstock.sql.relational.query_scope import QueryScope
from penstock.sql.relational.relations import Alias, Output, SelectScope
from penstock.sql.relational.select_list import (
    call_of_column,
    column_reference,
    is_of_all_columns,
    written_name,
)
from penstock.sql.relational.stream_names import (
    StreamSource,
    as_text,
    check_table,
    plan_names,
    strip_parentheses,
    type_of,
    write_plan_names,
)
from penstock.sql.relational.stream_typer import StreamTyper
from penstock.sql.relational.typer import Clause
from penstock.sql.source_names import WINDOW_TYPES

#: parts of window clauses that rows are read for: clause, its name, and the parts
_READ: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    nodes.SessionWindow: ("SESSION", ("ts",)),
    nodes.StateWindow: ("STATE_WINDOW", ("expr",)),
    nodes.EventWindow: ("EVENT_WINDOW", ("start", "end")),
}


def bind_stream(select: exp.Select, scope: QueryScope, source: StreamSource) -> StreamSelect:
    """Return the plan of *select*, which reads *source*: names are spelled as it spells them and
    have no table in front, names of keys are written out, and expressions have types.

    Raises:
        SqlSemanticError: a name means nothing, or types do not go together.
    """
    return _StreamBinder(select.copy(), scope, source).bind()


class _StreamBinder:
    def __init__(self, select: exp.Select, scope: QueryScope, source: StreamSource) -> None:
        self._select = select
        self._source = source
        self._names = SelectScope(relations=[source])
        self._window: nodes.WindowClause | None = select.args.get("window")
        self._typer = StreamTyper(
            self._names,
            precision=source.table.precision,
            timezone=scope.timezone,
            source=scope.source,
            functions=scope.functions,
            windowed=self._window is not None,
        )
        #: what the names mean that PARTITION BY gives, in lower case
        self._keys: dict[str, exp.Expr] = {}

    def bind(self) -> StreamSelect:
        note_columns(self._select.args["from_"].this, self._source.table)
        key_names = tuple(self._bind_keys())
        self._bind_window()
        self._bind_where()
        self._bind_items()
        write_plan_names(self._select, self._keys)
        written = tuple(self._select.expressions)
        fill = self._select.args.get("fill")
        for clause in ("window", "fill"):
            self._select.set(clause, None)
        return StreamSelect(lower_select(self._select), written, key_names, self._window, fill)

    # ------------------------------------------------------------ the clauses

    def _bind_keys(self) -> Iterator[str]:
        """Bind the keys, and yield what they are called."""
        clause = self._select.args.get("partition_by")
        for item in clause.expressions if clause is not None else []:
            meant = self._bind_key(strip_parentheses(item.unalias()))
            alias = item.alias if isinstance(item, exp.Alias) else ""
            if alias and alias.lower() not in self._keys:
                self._keys[alias.lower()] = meant
                output = Output(alias, type_of(meant), self._source.table.precision)
                self._names.aliases[alias.lower()] = Alias(output, aggregated=False)
            name = meant.name if isinstance(meant, exp.Column) else item.meta.get("sql")
            yield alias or name or to_sql(meant)

    def _bind_key(self, key: exp.Expr) -> exp.Expr:
        """Bind a key, and return what its name means: text, if its values are out of JSON."""
        self._typer.clause = Clause("PARTITION BY")
        kind = self._typer.type_of(key)
        meant = plan_names(key, self._keys)
        if kind.kind != "JSON":
            return meant
        self._typer.note_json_key(key)
        return as_text(meant)

    def _bind_window(self) -> None:
        if self._window is None:
            return
        name, parts = _READ.get(type(self._window), ("", ()))
        for part in parts:
            self._typer.clause = Clause(name)
            self._typer.compile(self._window.args[part])

    def _bind_where(self) -> None:
        where = self._select.args.get("where")
        if where is not None:
            self._typer.clause = Clause("WHERE")
            self._typer.truth(where.this)

    def _bind_items(self) -> None:
        items = [
            self._named(i) for item in self._select.expressions for i in self._written_out(item)
        ]
        self._select.set("expressions", items)
        self._typer.clause = Clause()
        for item in items:
            kind = self._typer.type_of(item.unalias())
            note(item, Binding(kind, self._source.table.precision))

    # ------------------------------------------------------------ the select list

    def _written_out(self, item: exp.Expr) -> Iterator[exp.Expr]:
        """Yield *item*, or what it leaves to be understood: `*`, `last(*)`."""
        call = item.unalias()
        table = self._source.table
        if isinstance(call, exp.Star):
            yield from (column_reference(c.name, item) for c in table.columns)
        elif isinstance(call, exp.Column) and isinstance(call.this, exp.Star):
            check_table(call, self._source, self._typer.refuse)
            yield from (column_reference(c.name, item) for c in table.columns)
        elif is_of_all_columns(call):
            own = (c.name for c in table.columns if c.name.lower() not in table.tags)
            yield from (call_of_column(call, name, item) for name in own)
        else:
            yield item

    def _named(self, item: exp.Expr) -> exp.Expr:
        """Call *item* as the result shows it, where it does not say that itself."""
        if isinstance(item, exp.Alias):
            return item
        name = written_name(item)
        if isinstance(item, exp.Column):
            found = self._source.find(name)
            if found is not None and found.name.lower() == name.lower():
                name = found.name
            elif self._window is not None and name.lower() in WINDOW_TYPES:
                name = name.lower()
        named = exp.Alias(this=item, alias=exp.to_identifier(name, quoted=True))
        named.meta.update(item.meta)
        return named

"""Binds queries: FROM first, then the select list, conditions, groups and order."""

from __future__ import annotations

from sqlglot import exp

from penstock.sql.functions.base import common
from penstock.sql.nodes import STANDS_ALONE
from penstock.sql.relational.bindings import Binding, note
from penstock.sql.relational.companions import find_chooser
from penstock.sql.relational.grouping import Keys, check_grouping, tell_apart
from penstock.sql.relational.join_limits import bind_limit
from penstock.sql.relational.lone_clauses import refuse_lone_fill
from penstock.sql.relational.lowering import lower, note_columns, note_computed
from penstock.sql.relational.positions import check_position, refuse_text
from penstock.sql.relational.query_plan import QueryPlan
from penstock.sql.relational.query_scope import QueryScope
from penstock.sql.relational.relations import (
    Alias,
    Output,
    Relation,
    SelectScope,
    TableColumns,
    table_name,
)
from penstock.sql.relational.select_list import output_name, rename_columns, write_out
from penstock.sql.relational.series import check_series
from penstock.sql.relational.tag_rows import check_source, only_tags
from penstock.sql.relational.time_joins import turn_round, write_out_window
from penstock.sql.relational.typer import Clause, ExpressionTyper

#: joins whose right side only decides which rows of the left there are
_FILTERING = ("SEMI", "ANTI")


def bind(tree: exp.Query, scope: QueryScope) -> QueryPlan:
    """Return the plan of *tree*: names are spelled as tables spell them, what the text leaves to be
    understood is written out, and expressions have types.

    Raises:
        SqlSemanticError: a name means nothing or too much, or types do not go together.
    """
    own = tree.copy()
    _QueryBinder(scope).bind(own, None)
    return lower(own)


class _QueryBinder:
    def __init__(self, scope: QueryScope) -> None:
        self._scope = scope
        self._unnamed = 0

    def bind(self, query: exp.Query, outer: SelectScope | None) -> tuple[Output, ...]:
        if isinstance(query, exp.Subquery):
            outputs = self.bind(query.this, outer)
            self._bind_order(query, outputs)
            return outputs
        if isinstance(query, exp.SetOperation):
            return self._bind_union(query, outer)
        assert isinstance(query, exp.Select)
        return _SelectBinder(self, self._scope, query, outer).bind()

    def name_subquery(self, node: exp.Subquery) -> str:
        """Return the name of a subquery in FROM; one that has none gets one that nobody else can
        mean.
        """
        if not node.alias:
            self._unnamed += 1
            name = f"_penstock_subquery_{self._unnamed}"
            node.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        return str(node.alias)

    def _bind_union(self, union: exp.SetOperation, outer: SelectScope | None) -> tuple[Output, ...]:
        left = self.bind(union.this, outer)
        right = self.bind(union.expression, outer)
        if len(left) != len(right):
            raise self._scope.source.semantic_error(
                f"{union.key.upper()} puts {len(left)} and {len(right)} columns under each other",
                union.expression,
                code="E_QUERY",
                hint="select the same number of columns on both sides",
            )
        outputs = tuple(self._merge(union, a, b) for a, b in zip(left, right, strict=True))
        note_columns(union, outputs)
        self._bind_order(union, outputs)
        return outputs

    def _merge(self, union: exp.SetOperation, left: Output, right: Output) -> Output:
        kind = common([left.type, right.type])
        if kind is None:
            word = union.key.upper()
            raise self._scope.source.semantic_error(
                f"{word}: {left.type} and {right.type} do not fit in column {left.name}",
                union.expression,
                code="E_TYPE",
                hint="convert one of them with CAST(… AS …)",
            )
        return Output(left.name, kind, left.precision)

    def _bind_order(self, query: exp.Query, outputs: tuple[Output, ...]) -> None:
        """Bind ORDER BY of a query that has only its columns to be ordered by."""
        order = query.args.get("order")
        if order is None:
            return
        names = Relation("", TableColumns(outputs, stored=False))
        typer = _typer(self._scope, SelectScope(relations=[names]), self)
        typer.clause = Clause(no_windows="ORDER BY of several queries")
        for item in order.expressions:
            refuse_text(item.this, typer)
            if not check_position(item.this, outputs, typer):
                typer.compile(item.this)


def _typer(scope: QueryScope, names: SelectScope, binder: _QueryBinder) -> ExpressionTyper:
    precision = names.relations[0].table.precision if names.relations else "ms"
    return ExpressionTyper(
        names,
        binder.bind,
        precision=precision,
        timezone=scope.timezone,
        source=scope.source,
        functions=scope.functions,
    )


class _SelectBinder:
    """Binds one SELECT."""

    def __init__(
        self,
        binder: _QueryBinder,
        scope: QueryScope,
        select: exp.Select,
        outer: SelectScope | None,
    ) -> None:
        self._binder = binder
        self._scope = scope
        self._select = select
        self._names = SelectScope(outer)
        self._typer = _typer(scope, self._names, binder)
        self._items: list[exp.Expr] = []
        self._outputs: tuple[Output, ...] = ()
        #: the relation whose rows have the windows of a WINDOW JOIN
        self._windowed: Relation | None = None
        #: with JLIMIT: the relation whose rows are kept, and the one whose rows are limited
        self._limited: tuple[Relation, Relation] | None = None
        #: what stands after grouping
        self._grouped = Clause()

    def bind(self) -> tuple[Output, ...]:
        self._bind_from()
        self._typer = _typer(self._scope, self._names, self._binder)
        refuse_lone_fill(self._select, self._typer.refuse)
        self._bind_items()
        self._bind_where()
        keys = self._bind_keys()
        self._bind_having()
        self._bind_qualify()
        self._bind_order()
        check_series(self._select, self._items, self._grouped, self._names, self._typer.refuse)
        self._check_grouping(keys)
        return self._outputs

    # ------------------------------------------------------------ FROM

    def _bind_from(self) -> None:
        source = self._select.args.get("from_")
        tags = self._select.args.pop("tags", None) is not None
        if tags:
            check_source(self._select, self._typer.refuse)
        if source is None:
            return
        self._add(source.this, tags=tags)
        for join in self._select.args.get("joins") or []:
            self._add(join.this)
            self._bind_join(join)

    def _add(self, node: exp.Expr, *, tags: bool = False) -> None:
        if isinstance(node, exp.Subquery):
            outer = None if node.meta.get(STANDS_ALONE) else self._names.outer
            columns = self._binder.bind(node.this, outer)
            precision = columns[0].precision if columns else "ms"
            columns = rename_columns(node, columns, self._typer.refuse)
            note_columns(node, columns)
            table = TableColumns(columns, precision, stored=False)
            name = self._binder.name_subquery(node)
        else:
            assert isinstance(node, exp.Table)
            table = self._columns_of(node)
            if tags:
                table = only_tags(self._select, node, table, self._typer.refuse)
            note_columns(node, table)
            name = table_name(node)
        if self._names.relation(name) is not None:
            raise self._scope.source.semantic_error(
                f"FROM has {name} twice",
                node,
                code="E_QUERY",
                hint=f"give one of them another name: {name} AS other",
            )
        self._names.relations.append(Relation(name, table))

    def _columns_of(self, node: exp.Table) -> TableColumns:
        computed = self._scope.computed(node)
        if computed is None:
            return self._scope.tables(node)
        note_computed(node, computed)
        return computed.columns

    def _bind_join(self, join: exp.Join) -> None:
        typer = _typer(self._scope, self._names, self._binder)
        typer.clause = Clause("ON")
        self._bind_time_join(join, typer)
        for identifier in join.args.get("using") or []:
            self._bind_using(identifier)
        if join.args.get("on") is not None:
            typer.truth(join.args["on"])
        if self._limited is not None:
            bind_limit(join, *self._limited, typer.refuse)
        if join.args.get("kind") in _FILTERING:
            self._names.relations.pop()

    def _bind_time_join(self, join: exp.Join, typer: ExpressionTyper) -> None:
        """Write a join by time as one that DuckDB has."""
        method = join.args.get("method")
        turned = method == "ASOF" and join.args.get("side") == "RIGHT"
        limited = join.args.get("join_limit") is not None
        if method != "WINDOW" and not turned and not limited:
            return
        if len(self._select.args["joins"]) > 1:
            typer.refuse(
                join.this,
                f"a {join.args['side']} {method} JOIN is of two tables",
                code="E_UNSUPPORTED_QUERY",
                hint="put it into a subquery, and join that",
            )
        left, right = self._names.relations
        if limited:
            self._limited = (left, right) if join.args["side"] == "LEFT" else (right, left)
        if turned:
            turn_round(self._select, join)
        elif method == "WINDOW":
            self._windowed = write_out_window(join, left, right, typer.refuse)

    def _bind_using(self, identifier: exp.Identifier) -> None:
        name = identifier.name
        right = self._names.relations[-1]
        left = [r for r in self._names.relations[:-1] if r.find(name) is not None]
        if left and right.find(name) is not None:
            self._names.merged.add(name.lower())
            return
        lacking = right.name if left else self._names.relations[0].name
        raise self._scope.source.semantic_error(
            f"there is no column {name} in {lacking}",
            identifier,
            code="E_UNKNOWN_COLUMN",
            hint="USING names columns of both sides; write ON for others",
        )

    # ------------------------------------------------------------ the clauses

    def _bind_items(self) -> None:
        self._items = write_out(self._select, self._names, self._typer.refuse)
        self._select.set("expressions", self._items)
        self._typer.clause = self._grouped
        outputs = []
        for item in self._items:
            outputs.append(self._bind_item(item))
        self._outputs = tuple(outputs)

    def _bind_item(self, item: exp.Expr) -> Output:
        before = self._grouped.count()
        kind = self._typer.type_of(item.unalias())
        inner = item.unalias()
        precision = self._typer.scope.precision
        if isinstance(inner, exp.Column):
            precision = inner.meta["binding"].precision
        note(item, Binding(kind, precision))
        output = Output(output_name(item), kind, precision)
        if isinstance(item, exp.Alias):
            after = self._grouped.count()
            alias = Alias(
                output,
                aggregated=after.aggregates > before.aggregates,
                windowed=after.windows > before.windows,
                of_series=after.series > before.series,
            )
            self._names.aliases.setdefault(output.name.lower(), alias)
        return output

    def _bind_where(self) -> None:
        where = self._select.args.get("where")
        if where is not None:
            self._typer.clause = Clause("WHERE")
            self._typer.truth(where.this)

    def _bind_keys(self) -> Keys:
        keys = Keys()
        for clause, name in (("group", "GROUP BY"), ("partition_by", "PARTITION BY")):
            found = self._select.args.get(clause)
            for key in found.expressions if found is not None else []:
                self._bind_key(key.unalias(), name, keys)
        if self._windowed is not None and self._grouped.aggregates and not keys:
            self._group_by_row(self._windowed, keys)
        return keys

    def _group_by_row(self, relation: Relation, keys: Keys) -> None:
        """Group by the rows of *relation*, each of which has a window of a WINDOW JOIN."""
        plain = [c for c, place in self._grouped.plain if place[0] == relation.name.lower()]
        names = [relation.columns[0].name, "tbname", *(column.name for column in plain)]
        columns = [
            exp.column(name, table=relation.name, quoted=True) for name in dict.fromkeys(names)
        ]
        for column in columns:
            clause = Clause("GROUP BY")
            self._typer.clause = clause
            self._typer.compile(column)
            keys.add(column, clause)
        self._select.set("group", exp.Group(expressions=columns))

    def _bind_key(self, key: exp.Expr, name: str, keys: Keys) -> None:
        clause = Clause(name)
        self._typer.clause = clause
        if check_position(key, self._outputs, self._typer):
            self._add_item(int(key.this) - 1, key, keys)
            return
        self._typer.compile(key)
        position = self._position_of(key) if not clause.plain else None
        if position is not None:
            self._add_item(position, key, keys)
        else:
            keys.add(key, clause)

    def _add_item(self, position: int, key: exp.Expr, keys: Keys) -> None:
        """Group by an item of the select list."""
        item = self._items[position].unalias()
        alias = self._names.aliases.get(self._outputs[position].name.lower())
        if alias is not None and (alias.aggregated or alias.windowed):
            what = "an aggregate" if alias.aggregated else "computed by OVER"
            self._typer.refuse(
                key,
                f"{alias.output.name} is {what} and cannot be grouped by",
                code="E_AGGREGATE_HERE",
                hint="group by what the aggregate is computed for",
            )
        keys.add(item, self._grouped)

    def _position_of(self, key: exp.Expr) -> int | None:
        """Return the place of the item that *key* names."""
        if not isinstance(key, exp.Column) or key.table:
            return None
        wanted = key.name.lower()
        names = [output.name.lower() for output in self._outputs]
        return names.index(wanted) if wanted in names else None

    def _bind_having(self) -> None:
        having = self._select.args.get("having")
        if having is not None:
            self._typer.clause = self._grouped
            self._grouped.no_windows = "HAVING"
            self._typer.truth(having.this)
            self._grouped.no_windows = ""

    def _bind_qualify(self) -> None:
        qualify = self._select.args.get("qualify")
        if qualify is None:
            return
        self._typer.clause = self._grouped
        self._typer.truth(qualify.this)
        if not self._grouped.windows:
            self._typer.refuse(
                qualify.this,
                "QUALIFY chooses rows by functions with OVER, and there is none",
                code="E_QUERY",
                hint="write WHERE for rows, HAVING for groups",
            )

    def _bind_order(self) -> None:
        order = self._select.args.get("order")
        self._typer.clause = self._grouped
        for item in order.expressions if order is not None else []:
            node = item.this
            refuse_text(node, self._typer)
            if check_position(node, self._outputs, self._typer):
                continue
            position = self._position_of(node)
            if position is None:
                self._typer.compile(node)
            else:
                output = self._outputs[position]
                note(node, Binding(output.type, output.precision))

    def _check_grouping(self, keys: Keys) -> None:
        if not self._grouped.aggregates and self._select.args.get("group") is None:
            return
        chooser = find_chooser(self._items)
        if chooser is not None:
            tell_apart(chooser, keys)
        check_grouping(
            self._grouped, keys, self._names, self._typer.refuse, chooses=chooser is not None
        )

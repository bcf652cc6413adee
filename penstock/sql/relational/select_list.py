"""The select list written out: `*` as columns, `last(*)` as a call for each, every item named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.relational.companions import BY_TIME
from penstock.sql.relational.names import Refuse
from penstock.sql.relational.relations import Output, Relation, SelectScope

#: longest name of a column of a result
MAX_COLUMN_NAME_BYTES = 64


def write_out(select: exp.Select, scope: SelectScope, refuse: Refuse) -> list[exp.Expr]:
    """Return the items of *select* with nothing left to be understood."""
    items = [one for item in select.expressions for one in _expand(item, scope, refuse)]
    return [name_as_written(one) for item in items for one in _split_call(item)]


def output_name(item: exp.Expr) -> str:
    """Return the name that an item has in the answer."""
    return str(item.alias if isinstance(item, exp.Alias) else item.name)


def written_name(item: exp.Expr) -> str:
    """Return the name that an item has in a result: its own, or else its text, cut short."""
    if isinstance(item, exp.Alias | exp.Column):
        return output_name(item)
    text = " ".join(str(item.meta.get("sql") or to_sql(item)).split())
    return text.encode()[:MAX_COLUMN_NAME_BYTES].decode(errors="ignore")


def column_reference(name: str, like: exp.Expr) -> exp.Expr:
    """Return a column called *name* that stands where *like* does."""
    node = exp.Column(this=exp.Identifier(this=name, quoted=False))
    node.meta.update({k: v for k, v in like.meta.items() if k != "sql"})
    return node


def call_of_column(call: exp.Expr, name: str, like: exp.Expr) -> exp.Expr:
    """Return *call*, which is of `*`, of the column *name*; it stands where *like* does."""
    function = _name(call)
    node = exp.Anonymous(this=function, expressions=[column_reference(name, like)])
    node.meta.update(like.meta)
    node.meta["sql"] = f"{function}({name})"
    return node


def rename_columns(
    subquery: exp.Subquery, columns: tuple[Output, ...], refuse: Refuse
) -> tuple[Output, ...]:
    """Return the columns of *subquery* under the names that stand behind its own: `q (a, b)`."""
    alias = subquery.args.get("alias")
    names = alias.columns if alias is not None else []
    if alias is None or not names:
        return columns
    if len(names) != len(columns):
        refuse(
            names[-1],
            f"{alias.name} has {len(columns)} columns, and {len(names)} names are given",
            code="E_QUERY",
            hint="give each column a name, or none",
        )
    given = [name.name.lower() for name in names]
    for at, name in enumerate(names):
        if name.name.lower() in given[:at]:
            refuse(
                name,
                f"{alias.name} has two columns {name.name}",
                code="E_QUERY",
                hint="give each column a name of its own",
            )
    return tuple(replace(c, name=n.name) for c, n in zip(columns, names, strict=True))


def name_as_written(item: exp.Expr) -> exp.Expr:
    """Call a column without a name of its own as it was written: `count(*)`."""
    if isinstance(item, exp.Alias | exp.Column | exp.Star) or not item.meta.get("sql"):
        return item
    name = exp.to_identifier(str(item.meta["sql"]), quoted=True)
    # not `exp.alias_`, which gives a subquery the name of a table
    named = exp.Alias(this=item, alias=name)
    for key in ("start", "end"):
        if key in item.meta:
            named.meta[key] = item.meta[key]
    return named


def _expand(item: exp.Expr, scope: SelectScope, refuse: Refuse) -> Iterator[exp.Expr]:
    if isinstance(item, exp.Star):
        yield from _every_column(item, scope.relations, scope, refuse)
    elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        relation = scope.relation(item.table)
        if relation is None:
            refuse(
                item,
                f"{item.table} is not in FROM",
                code="E_UNKNOWN_COLUMN",
                hint="FROM has " + (", ".join(r.name for r in scope.relations) or "no table"),
            )
        yield from (_column(relation, c, item) for c in relation.table.shown)
    elif is_of_all_columns(item):
        yield from _call_each(item, scope, refuse)
    else:
        yield item


def _every_column(
    item: exp.Expr, relations: list[Relation], scope: SelectScope, refuse: Refuse
) -> Iterator[exp.Expr]:
    if not relations:
        refuse(item, "* needs a table", code="E_QUERY", hint="add FROM")
    seen: set[str] = set()
    for relation in relations:
        for column in relation.table.shown:
            name = column.name.lower()
            if name not in scope.merged:
                yield _column(relation if len(relations) > 1 else None, column, item)
            elif name not in seen:
                seen.add(name)
                yield _column(None, column, item)


def _column(relation: Relation | None, column: Output, item: exp.Expr) -> exp.Expr:
    table = relation.name if relation is not None else None
    made = exp.column(column.name, table=table, quoted=True)
    for key in ("start", "end"):
        if key in item.meta:
            made.meta[key] = item.meta[key]
    return made


def is_of_all_columns(item: exp.Expr) -> bool:
    """Tell if *item* is `first(*)`, `last(*)` or `last_row(*)`."""
    return _name(item) in BY_TIME and any(isinstance(a, exp.Star) for a in item.expressions)


def _name(node: exp.Expr) -> str:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else ""


def _call_each(item: exp.Expr, scope: SelectScope, refuse: Refuse) -> Iterator[exp.Expr]:
    if not scope.relations:
        refuse(item, f"{_name(item)}(*) needs a table", code="E_QUERY", hint="add FROM")
    for column in scope.relations[0].table.shown:
        call = exp.Anonymous(this=_name(item), expressions=[_column(None, column, item)])
        yield exp.alias_(call, column.name, quoted=True)


def _split_call(item: exp.Expr) -> list[exp.Expr]:
    """Write `last(a, b)` as `last(a), last(b)`."""
    call = item.unalias()
    if _name(call) not in BY_TIME or len(call.expressions) < 2:
        return [item]
    name = str(call.this)
    single = (exp.Anonymous(this=name, expressions=[a.copy()]) for a in call.expressions)
    return [
        exp.alias_(one, f"{name}({a.sql(dialect='penstock')})", quoted=True)
        for one, a in zip(single, call.expressions, strict=True)
    ]

"""Names in expressions to columns: qualifiers, time aliases, virtual columns, aliases, scopes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from penstock.sql.compile.compiler import nearest
from penstock.sql.relational.relations import Alias, Output, Relation, SelectScope
from penstock.sql.source_names import WINDOW_TYPES

#: raises a semantic error at a node
Refuse = Callable[..., NoReturn]
#: most names that a hint lists
_MOST_LISTED = 20
#: columns of a SELECT with RANGE
_POINT_NAMES = ("_irowts", "_isfilled")


@dataclass(frozen=True)
class Found:
    """What a name means. `own`: of this SELECT and not of one around it."""

    output: Output
    #: (relation, column) in lower case
    place: tuple[str, str]
    own: bool = True
    alias: Alias | None = None


def resolve(scope: SelectScope, node: exp.Column, refuse: Refuse) -> Found:
    """Find what *node* names, and spell it as its table does."""
    looked_in: SelectScope | None = scope
    while looked_in is not None:
        found = _find_in(looked_in, node, refuse, own=looked_in is scope)
        if found is not None:
            if found.alias is None:
                _spell(node, found.output.name)
            return found
        looked_in = looked_in.outer
    _refuse_unknown(scope, node, refuse)


def _spell(node: exp.Column, name: str) -> None:
    """Give *node* the name that its table has; the database before the table is no longer needed,
    because a table is known by its name or its alias.
    """
    node.set("db", None)
    node.this.set("this", name)


def _find_in(scope: SelectScope, node: exp.Column, refuse: Refuse, *, own: bool) -> Found | None:
    if node.table:
        relation = scope.relation(node.table, node.args["db"].name if node.args.get("db") else "")
        if relation is None:
            return None
        output = relation.find(node.name)
        if output is None:
            _refuse_column(node, [*relation.names()], refuse, relation.name)
        return Found(output, (relation.name.lower(), output.name.lower()), own)
    having = scope.having(node.name)
    if len(having) > 1:
        _refuse_ambiguous(node, having, refuse)
    if having:
        output = having[0].find(node.name)
        assert output is not None  # `having` says so
        return Found(output, (having[0].name.lower(), output.name.lower()), own)
    alias = scope.aliases.get(node.name.lower())
    return Found(alias.output, ("", alias.output.name.lower()), own, alias) if alias else None


def _refuse_ambiguous(node: exp.Column, having: list[Relation], refuse: Refuse) -> NoReturn:
    choices = " or ".join(f"{r.name}.{node.name}" for r in having[:3])
    refuse(
        node,
        f"column {node.name} is in {len(having)} tables of FROM",
        code="E_AMBIGUOUS_COLUMN",
        hint=f"write {choices}",
    )


def _refuse_unknown(scope: SelectScope, node: exp.Column, refuse: Refuse) -> NoReturn:
    if node.table:
        _refuse_table(scope, node, refuse)
    if node.name.lower() in WINDOW_TYPES:
        refuse(
            node,
            f"{node.name} needs a window",
            code="E_UNKNOWN_COLUMN",
            hint="add a window clause such as INTERVAL(10s)",
        )
    if node.name.lower() in _POINT_NAMES:
        refuse(
            node,
            f"{node.name} needs RANGE",
            code="E_UNKNOWN_COLUMN",
            hint="it stands beside interp(column) with RANGE(from, to) EVERY(1m)",
        )
    _refuse_column(node, scope.names(), refuse)


def _refuse_table(scope: SelectScope, node: exp.Column, refuse: Refuse) -> NoReturn:
    known = [r.name for r in scope.relations]
    near = nearest(node.table, known)
    hint = f"did you mean {near}.{node.name}?" if near else "FROM has " + ", ".join(known)
    refuse(
        node,
        f"{node.table} is not in FROM",
        code="E_UNKNOWN_COLUMN",
        hint=hint if known else "there is no FROM",
    )


def _refuse_column(
    node: exp.Column, known: list[str], refuse: Refuse, relation: str = ""
) -> NoReturn:
    where = f" in {relation}" if relation else ""
    refuse(
        node,
        f"there is no column {node.name}{where}",
        code="E_UNKNOWN_COLUMN",
        hint=_hint(node.name, list(dict.fromkeys(known))),
    )


def _hint(name: str, known: list[str]) -> str:
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {near}?"
    if not known:
        return "there is no FROM; text is written in quotes"
    more = ", …" if len(known) > _MOST_LISTED else ""
    return f"known here: {', '.join(known[:_MOST_LISTED])}{more}"

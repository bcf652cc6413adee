"""Macros whose argument DuckDB does not know the type of: aggregates, OVER, subqueries, and names
of these; and calls in calls.

DuckDB chooses among the forms of a macro by the types of its arguments, and finds none or several
where an argument is an aggregate. It binds an argument to choose, and again in what it chose: with
calls in calls that doubles its work for each level. The type is bound already, so the form is
chosen here.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from penstock.duck.types import duck_type
from penstock.sql.functions.duckdb import Macro
from penstock.sql.relational import AGGREGATE_NAMES, Binding, binding_of, is_alias
from services.store.binding import Context
from services.store.functions import FUNCTIONS, function_name

_FORM = re.compile(r"\(x (\w+)")
_ARGUMENT = re.compile(r"\bx\b")


def with_form(made: exp.Expr, call: exp.Anonymous, context: Context) -> exp.Expr:
    """Return *made*, a call for DuckDB, of the one form that the type of its argument asks for.

    Args:
        made: what *call* has become.
        call: as it was bound.
    """
    macro = context.needed.get(function_name(made))
    if not isinstance(macro, Macro) or len(macro.overloads) == 1 or not call.expressions:
        return made
    argument = call.expressions[0]
    binding = binding_of(argument)
    if binding is None or not _is_opaque(argument):
        return made
    form = _form(macro, binding)
    if form is not None:
        name = f"{macro.name}_{form[0].lower()}"
        one = replace(macro, name=name, overloads=(_of_any_type(*form),))
        context.needed.setdefault(one.name, one)
        made.set("this", one.name)
    return made


def _is_opaque(argument: exp.Expr) -> bool:
    return any(
        isinstance(node, exp.Window | exp.Query)
        or (isinstance(node, exp.Column) and is_alias(node))
        or function_name(node) in AGGREGATE_NAMES
        or function_name(node) in FUNCTIONS
        for node in argument.walk()
    )


def _of_any_type(kind: str, form: str) -> str:
    """Return the form for arguments of *kind* without that type in its head, which would have
    DuckDB bind the argument twice. One that names its argument twice stays: it is an aggregate's,
    and those are in no calls of each other.
    """
    head, _, body = form.partition(") AS ")
    if len(_ARGUMENT.findall(body)) != 1:
        return form
    body = _ARGUMENT.sub(f"CAST(x AS {kind})", body)
    return f"{head.replace(f'x {kind}', 'x', 1)}) AS {body}"


def _form(macro: Macro, binding: Binding) -> tuple[str, str] | None:
    """Return the form for a type, with the type: that of DOUBLE for numbers that have none."""
    forms = {m[1]: text for text in macro.overloads if (m := _FORM.match(text)) is not None}
    wanted = duck_type(binding.kind, binding.precision, str(binding.type))
    if wanted not in forms and binding.type.numeric:
        wanted = "DOUBLE"
    return (wanted, forms[wanted]) if wanted in forms else None

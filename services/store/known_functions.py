"""Which functions a query may call: those of the dialect, and user-defined ones."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql import nodes
from penstock.sql.functions import QUERY_ONLY, SERIES, WINDOW_FUNCTIONS
from penstock.sql.functions.other_names import did_you_mean
from penstock.sql.planning.view import SchemaView
from penstock.sql.statements import Query
from penstock.udf import UserFunction
from services.store.functions import FUNCTIONS

_KNOWN = {nodes.COLS, *FUNCTIONS, *QUERY_ONLY, *SERIES, *WINDOW_FUNCTIONS}


def functions_of(
    nodes: Iterable[exp.Expr], statement: Query, view: SchemaView
) -> dict[str, UserFunction]:
    """Return the user-defined functions that *nodes* call, by name; one goes before a function of
    the dialect that is called the same.

    Raises:
        SqlSemanticError: there is no function of a name.
    """
    found: dict[str, UserFunction] = {}
    for call in nodes:
        if not isinstance(call, exp.Anonymous):
            continue
        name = str(call.this).lower()
        function = view.function(name)
        if function is not None and not function.aggregate:
            found[name] = function
        elif name not in _KNOWN:
            raise _no_function(call, statement, function)
    return found


def _no_function(
    call: exp.Anonymous, statement: Query, aggregate: UserFunction | None
) -> SqlSemanticError:
    name = str(call.this).lower()
    if aggregate is not None:
        return statement.error(
            f"{name[:80]}() needs a window in a query",
            call,
            code="E_NONWINDOW_AGG",
            hint=f"SELECT {name}(…) FROM … INTERVAL(1h)",
        )
    listed = "docs/sql-functions.md lists the functions that a query has"
    hint = did_you_mean(name, sorted(_KNOWN)) or listed
    return statement.error(
        f"there is no function {name[:80]}()", call, code="E_UNKNOWN_FUNCTION", hint=hint
    )

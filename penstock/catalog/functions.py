"""Rules of user-defined functions: which can be, and that none goes that a stream calls."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from penstock.catalog.changes import Change, NewId
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError
from penstock.sql.functions import AGGREGATES, FORBIDDEN, RANDOM, REGISTRY, WINDOW_FUNCTIONS
from penstock.types import ColumnType
from penstock.udf.function import UserFunction

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
MAX_CODE = 64 * 1024
MAX_PARAMETERS = 16


def create_function(
    catalog: Catalog,
    new_id: NewId,
    name: str,
    parameters: Sequence[ColumnType],
    returns: ColumnType,
    code: str,
    *,
    aggregate: bool = False,
    if_not_exists: bool = False,
    or_replace: bool = False,
) -> Change:
    """Create a function, or replace one: streams that run keep the one they were made with."""
    old = catalog.function(name)
    if old is not None and not or_replace:
        if if_not_exists:
            return Change()
        raise CatalogError(
            f"function {old.name} exists already",
            code="E_FUNCTION_EXISTS",
            hint="CREATE OR REPLACE FUNCTION replaces it",
        )
    _check_name(name)
    _check_count(parameters, aggregate)
    if len(code.encode()) > MAX_CODE:
        raise CatalogError(f"the code of a function may have {MAX_CODE} bytes", code="E_BAD_OPTION")
    if any(t.kind == "JSON" for t in (*parameters, returns)):
        raise CatalogError("JSON is possible as a tag only", code="E_BAD_JSON", hint="take VARCHAR")
    made = UserFunction(new_id(), name, tuple(parameters), returns, code, aggregate)
    return Change((made,), () if old is None else (old,))


def _check_count(parameters: Sequence[ColumnType], aggregate: bool) -> None:
    if aggregate and len(parameters) != 1:
        raise CatalogError("an aggregate function takes one argument", code="E_BAD_OPTION")
    if not 1 <= len(parameters) <= MAX_PARAMETERS:
        raise CatalogError(f"a function takes 1 to {MAX_PARAMETERS} arguments", code="E_BAD_OPTION")


def _check_name(name: str) -> None:
    if not _NAME.match(name) or keyword.iskeyword(name) or name.startswith("_"):
        raise CatalogError(
            f"{name!r} cannot be a function's name",
            code="E_BAD_NAME",
            hint="letters, digits and underscores, as in Python",
        )
    if name.lower() in {*REGISTRY, *AGGREGATES, *FORBIDDEN, *RANDOM, *WINDOW_FUNCTIONS}:
        raise CatalogError(
            f"{name} is a function of the dialect",
            code="E_RESERVED_NAME",
            hint="choose another name",
        )


def drop_function(catalog: Catalog, name: str, *, if_exists: bool = False) -> Change:
    found = catalog.function(name)
    if found is None:
        if if_exists:
            return Change()
        raise CatalogError(
            f"there is no function {name}", code="E_NO_FUNCTION", hint="SHOW FUNCTIONS lists them"
        )
    users = [
        f"{s.database}.{s.name}"
        for s in catalog.streams()
        if any(f.id == found.id for f in s.plan.functions)
    ]
    if users:
        raise CatalogError(
            f"cannot drop {found.name}: stream {', '.join(users)} uses it",
            code="E_IN_USE",
            hint="drop the stream first",
        )
    return Change(removes=(found,))

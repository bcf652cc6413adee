"""The walk over a tree: nodes to their compilers, constants folded, errors with their place."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeAlias

import polars as pl
from sqlglot import exp

from penstock.sql.functions.base import NULL, Compiled, CompileScope
from penstock.sql.source import Source
from penstock.types import ColumnType
from penstock.udf import UserFunction

#: columns that an expression may name, each as often as it stands in the polars expression: some
#: functions use an argument more than once
_MAX_COLUMN_REFERENCES = 20_000
#: name → the user-defined function called so
Functions: TypeAlias = Callable[[str], UserFunction | None]
#: compiles one type of node
NodeCompiler: TypeAlias = "Callable[[Compiler, Any], Compiled]"


def nothing(name: str) -> UserFunction | None:
    """Find no user-defined function."""
    return None


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that *word* most likely means."""
    names = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), names, 1, 0.6)
    return names[matches[0]] if matches else None


class Compiler:
    """Compiles one tree. *nodes* maps each type of node to what compiles it."""

    def __init__(
        self,
        nodes: Mapping[type[exp.Expr], NodeCompiler],
        columns: Mapping[str, ColumnType],
        precision: str,
        timezone: str,
        source: Source,
        functions: Functions,
        computed: Mapping[str, pl.Expr],
    ) -> None:
        self.functions = functions
        self.computed = computed
        self.columns = {name.lower(): (name, kind) for name, kind in columns.items()}
        self.scope = CompileScope(precision, timezone, self.refuse)
        self._nodes = nodes
        self._source = source

    def refuse(
        self,
        node: exp.Expr | None,
        message: str,
        *,
        code: str = "E_SEMANTIC",
        detail: str = "",
        hint: str = "",
    ) -> NoReturn:
        """Raise a semantic error that points at *node*."""
        raise self._source.semantic_error(message, node, code=code, detail=detail, hint=hint)

    def mismatch(
        self, node: exp.Expr, what: str, left: ColumnType, right: ColumnType, hint: str = ""
    ) -> NoReturn:
        """Raise the error of two types that do not fit."""
        self.refuse(
            node,
            f"{what} {left} and {right} do not fit",
            code="E_TYPE",
            hint=hint or "convert one of them with CAST(… AS …)",
        )

    def compile(self, node: exp.Expr) -> Compiled:
        """Compile *node* and everything below it."""
        compile_node = self._nodes.get(type(node))
        if compile_node is None:
            self.refuse(
                node,
                f"{type(node).__name__} is not possible in this place",
                code="E_UNSUPPORTED_EXPRESSION",
            )
        return self.fold(compile_node(self, node), node)

    def fold(self, value: Compiled, node: exp.Expr) -> Compiled:
        """Compute a constant once, here: it stays one value however long the frame is."""
        if value.literal or value.type == NULL:
            return value
        names = value.expr.meta.root_names()
        if len(names) > _MAX_COLUMN_REFERENCES:
            hint = "nest fewer functions, or compute a part of it first"
            self.refuse(
                node, "this expression is too large", code="E_UNSUPPORTED_EXPRESSION", hint=hint
            )
        if names:
            return value
        try:
            constant = pl.select(value.expr).item()
        except pl.exceptions.PolarsError as error:
            self.refuse(
                node,
                "this constant cannot be computed",
                code="E_CONSTANT",
                detail=str(error).splitlines()[0],
            )
        return Compiled(
            pl.lit(constant, value.type.polars()), value.type, literal=True, value=constant
        )

    def double(self, value: Compiled, node: exp.Expr) -> pl.Expr:
        """Return *value* as Float64; a JSON value is read as a number, other text is refused."""
        kind = value.type
        if kind == NULL:
            return pl.lit(None, pl.Float64)
        if kind.kind == "JSON":
            return value.expr.cast(pl.Float64, strict=False)
        if kind.numeric or kind.kind in ("BOOL", "TIMESTAMP"):
            self.check_fixed_length(value, node)
            return value.expr.cast(pl.Float64)
        self.refuse(
            node,
            f"a number is needed here, not {kind}",
            code="E_TYPE",
            detail=f"{kind} and DOUBLE do not fit",
            hint="write CAST(… AS DOUBLE)",
        )

    def truth(self, node: exp.Expr) -> pl.Expr:
        """Compile *node* as a condition: BOOL, or a number that is not 0."""
        value = self.compile(node)
        if value.type == NULL:
            return pl.lit(None, pl.Boolean)
        if value.type.kind == "BOOL":
            return value.expr
        if value.type.numeric:
            return value.expr != 0
        self.refuse(
            node,
            f"a condition is needed here, not {value.type}",
            code="E_TYPE",
            detail=f"{value.type} is not BOOL",
            hint="compare it with something",
        )

    def check_fixed_length(self, value: Compiled, node: exp.Expr) -> None:
        """Refuse a duration of months or years."""
        if value.duration is not None and value.duration.natural:
            self.refuse(
                node,
                f"{value.duration} has no fixed length",
                code="E_TYPE",
                hint="months and years can only be added to a time",
            )

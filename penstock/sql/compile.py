"""Expressions of the dialect compiled to polars, with TDengine's types.

Owns what an operator means and how types meet; functions are in `functions/`. Values: TIMESTAMP is
Int64 ticks, NULL in gives NULL out, AND/OR/NOT are three-valued, arithmetic gives DOUBLE (time plus
or minus a duration gives a time), x/0 is NULL. Refuses unknown names, aggregates (the planner takes
them out first) and types that do not fit, with place and way out.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn, TypeAlias

import polars as pl
from sqlglot import exp
from sqlglot.errors import SqlglotError

from penstock.sql import nodes
from penstock.sql.dialect import tokenize
from penstock.sql.functions import AGGREGATES, FORBIDDEN, RANDOM, REGISTRY
from penstock.sql.functions.base import (
    BIGINT,
    BOOL,
    DOUBLE,
    MAX_TEXT,
    NULL,
    TIMESTAMP,
    Call,
    Compiled,
    Function,
    Parameter,
    Scope,
    common,
)
from penstock.sql.functions.conditional import as_type
from penstock.sql.functions.convert import convert
from penstock.sql.functions.exact import finite, remainder, tick_sum
from penstock.sql.functions.text import like_pattern
from penstock.sql.functions.time import NOW, parse_iso, shift
from penstock.sql.parsers.query import QueryParser
from penstock.sql.source import Source
from penstock.types import ColumnType
from penstock.udf import UserFunction, sandbox

__all__ = ["Compiled", "compile_expression", "type_of"]

#: literals that say what they are worth as a number of each side of a comparison
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_MAX_PATTERN = 1024
#: columns that an expression may name, each as often as it stands in what polars gets: some
#: functions use an argument more than once
_LARGEST = 20_000
#: what is infinite or no number on the left side stays so: a chain of these makes NULL of it once,
#: at its end
_KEEPS_INFINITE = (exp.Add, exp.Sub, exp.Mul, exp.Div)
#: name → the user-defined function called so
Functions: TypeAlias = Callable[[str], UserFunction | None]


def _finite(raw: pl.Expr) -> Compiled:
    return Compiled(finite(raw), DOUBLE, raw=raw)


def nothing(name: str) -> UserFunction | None:
    """No user-defined functions."""
    return None


def compile_expression(
    sql: str | exp.Expr,
    columns: Mapping[str, ColumnType],
    *,
    precision: str = "ms",
    timezone: str = "UTC",
    source: Source | None = None,
    functions: Functions = nothing,
    computed: Mapping[str, pl.Expr] | None = None,
) -> Compiled:
    """Compile one expression over a frame that has *columns* (and `_now` where `now` is used).

    *source*: the text *sql* comes from. *functions*: finds user-defined ones. *computed*: columns
    that are made of the frame's.
    """
    if isinstance(sql, str):
        source = Source(sql)
        sql = parse_expression(sql)
    made = _Compiler(
        columns, precision, timezone, source or Source(), functions, computed or {}
    ).compile(sql)
    if made.type == NULL:
        return Compiled(pl.lit(None, pl.Int64), BIGINT, literal=True)
    return made


def parse_expression(text: str) -> exp.Expr:
    """The tree of one expression; raises SqlSyntaxError."""
    try:
        tokens = tokenize(text)
    except SqlglotError:
        raise Source(text).syntax_error(
            "this text cannot be read: a string or name is never closed", 0
        ) from None
    parser = QueryParser(tokens, Source(text))
    tree = parser.condition()
    parser.expect_end()
    return tree


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that *word* most likely means."""
    names = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), names, 1, 0.6)
    return names[found[0]] if found else None


def type_of(
    sql: str | exp.Expr,
    columns: Mapping[str, ColumnType],
    *,
    precision: str = "ms",
    timezone: str = "UTC",
) -> ColumnType:
    """Type of an expression's result."""
    return compile_expression(sql, columns, precision=precision, timezone=timezone).type


class _Compiler:
    """Walks one tree; every method takes a node and gives what it is worth."""

    def __init__(
        self,
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
        self.source = source
        self.scope = Scope(precision, timezone, self.refuse)
        self.by_operator: dict[type[exp.Expr], Callable[[Any, Compiled, Compiled], Compiled]] = {
            exp.Add: self._sum,
            exp.Sub: self._sum,
            exp.Mul: self._product,
            exp.Div: self._product,
            exp.Mod: self._product,
            exp.BitwiseAnd: self._bits,
            exp.BitwiseOr: self._bits,
        }
        self.by_node: dict[type[exp.Expr], Callable[[Any], Compiled]] = {
            exp.Paren: lambda n: self.compile(n.this),
            exp.Alias: lambda n: self.compile(n.this),
            exp.Column: self._column,
            exp.Literal: self._literal,
            exp.Null: lambda n: Compiled(pl.lit(None), NULL, literal=True),
            exp.Boolean: lambda n: Compiled(
                pl.lit(bool(n.this)), BOOL, literal=True, value=bool(n.this)
            ),
            nodes.DurationLiteral: self._duration,
            exp.Neg: self._negative,
            **dict.fromkeys(self.by_operator, self._chain),
            exp.And: self._logic,
            exp.Or: self._logic,
            exp.Not: lambda n: Compiled(~self.truth(n.this), BOOL),
            exp.EQ: self._compare,
            exp.NEQ: self._compare,
            exp.LT: self._compare,
            exp.LTE: self._compare,
            exp.GT: self._compare,
            exp.GTE: self._compare,
            exp.Between: self._between,
            exp.In: self._in,
            exp.Is: self._is,
            exp.Like: self._like,
            nodes.MatchRegex: self._match,
            nodes.ContainsKey: self._contains,
            exp.JSONExtract: self._json,
            exp.Case: self._case,
            exp.Cast: self._cast,
            exp.Anonymous: self._call,
            exp.Trim: self._trim,
        }

    def refuse(
        self,
        node: exp.Expr | None,
        message: str,
        *,
        code: str = "E_SEMANTIC",
        detail: str = "",
        hint: str = "",
    ) -> NoReturn:
        raise self.source.semantic_error(message, node, code=code, detail=detail, hint=hint)

    def mismatch(
        self, node: exp.Expr, what: str, left: ColumnType, right: ColumnType, hint: str = ""
    ) -> NoReturn:
        self.refuse(
            node,
            f"{what} {left} and {right} do not fit",
            code="E_TYPE",
            hint=hint or "convert one of them with CAST(… AS …)",
        )

    def compile(self, node: exp.Expr) -> Compiled:
        made = self.by_node.get(type(node))
        if made is None:
            self.refuse(
                node,
                f"{type(node).__name__} is not possible in this place",
                code="E_UNSUPPORTED_EXPRESSION",
            )
        return self._folded(made(node), node)

    def _folded(self, value: Compiled, node: exp.Expr) -> Compiled:
        """A constant computed once, here: it stays one value however long the frame is."""
        if value.literal or value.type == NULL:
            return value
        names = value.expr.meta.root_names()
        if len(names) > _LARGEST:
            hint = "nest fewer functions, or compute a part of it in another stream"
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

    # ---------------------------------------------------------------- leaves

    def _column(self, node: exp.Column) -> Compiled:
        if isinstance(node.this, exp.Star):
            self.refuse(
                node, "* is not possible inside an expression", code="E_UNSUPPORTED_EXPRESSION"
            )
        name = node.name.lower()
        if name in self.columns:
            spelled, kind = self.columns[name]
            return Compiled(self.computed.get(spelled, pl.col(spelled)), kind)
        if name in (NOW, "now"):
            return Compiled(pl.col(NOW), TIMESTAMP)
        near = nearest(node.name, (spelled for spelled, _ in self.columns.values()))
        hint = (
            f"did you mean {near}?"
            if near
            else "known here: " + ", ".join(sorted(s for s, _ in self.columns.values()))
        )
        self.refuse(node, f"there is no column {node.name}", code="E_UNKNOWN_COLUMN", hint=hint)

    def _literal(self, node: exp.Literal, sign: int = 1) -> Compiled:
        if node.is_string:
            text: str = node.this
            return Compiled(
                pl.lit(text),
                ColumnType("VARCHAR", length=max(1, len(text.encode()))),
                literal=True,
                value=text,
            )
        return _number(node.this, sign)

    def _duration(self, node: nodes.DurationLiteral) -> Compiled:
        duration = node.duration
        if duration.natural:
            return Compiled(pl.lit(None, pl.Int64), BIGINT, literal=True, duration=duration)
        ticks = duration.ticks(self.scope.precision)
        return Compiled(
            pl.lit(ticks, pl.Int64), BIGINT, literal=True, value=ticks, duration=duration
        )

    # ---------------------------------------------------------------- arithmetic

    def double(self, value: Compiled, node: exp.Expr) -> pl.Expr:
        """*value* as Float64; text is refused, a JSON value is read as a number."""
        kind = value.type
        if kind == NULL:
            return pl.lit(None, pl.Float64)
        if kind.kind == "JSON":
            return value.expr.cast(pl.Float64, strict=False)
        if kind.numeric or kind.kind in ("BOOL", "TIMESTAMP"):
            self._no_calendar(value, node)
            return value.expr.cast(pl.Float64)
        self.refuse(
            node,
            f"a number is needed here, not {kind}",
            code="E_TYPE",
            detail=f"{kind} and DOUBLE do not fit",
            hint="write CAST(… AS DOUBLE)",
        )

    def _no_calendar(self, value: Compiled, node: exp.Expr) -> None:
        if value.duration is not None and value.duration.natural:
            self.refuse(
                node,
                f"{value.duration} has no fixed length",
                code="E_TYPE",
                hint="months and years can only be added to a time",
            )

    def _negative(self, node: exp.Neg) -> Compiled:
        inner = node.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return self._literal(inner, -1)
        value = self.compile(inner)
        if value.duration is not None:
            self.refuse(node, "a duration has no sign", code="E_TYPE", hint="subtract it instead")
        return Compiled(-self.double(value, node.this), DOUBLE)

    def _chain(self, node: exp.Binary) -> Compiled:
        """`a + b - c …`, hundreds of operators long: from the left, in a loop, so that no depth of
        stack decides what is possible.
        """
        spine: list[exp.Binary] = []
        left: exp.Expr = node
        while isinstance(left, exp.Binary) and type(left) in self.by_operator:
            spine.append(left)
            left = left.left
        value = self.compile(left)
        for operation in reversed(spine):
            if value.raw is not None and type(operation) in _KEEPS_INFINITE:
                value = replace(value, expr=value.raw)
            made = self.by_operator[type(operation)](
                operation, value, self.compile(operation.right)
            )
            value = self._folded(made, operation)
        return value

    def _sum(self, node: exp.Binary, left: Compiled, right: Compiled) -> Compiled:
        minus = isinstance(node, exp.Sub)
        if TIMESTAMP in (left.type, right.type):
            return self._time_sum(node, left, right, minus)
        a = self.double(left, node.left)
        b = self.double(right, node.right)
        if left.duration is not None and right.duration is not None:
            return Compiled(tick_sum(left.expr, right.expr, minus), BIGINT)
        return _finite(a - b if minus else a + b)

    def _time_sum(self, node: exp.Binary, left: Compiled, right: Compiled, minus: bool) -> Compiled:
        """Time ± duration or ticks gives a time; time - time gives ticks."""
        if left.type == TIMESTAMP and right.type == TIMESTAMP:
            if not minus:
                self.refuse(
                    node,
                    "two times cannot be added",
                    code="E_TYPE",
                    hint="subtract them, or add a duration such as 1h",
                )
            return Compiled(tick_sum(left.expr, right.expr, minus=True), BIGINT)
        if right.type == TIMESTAMP:
            if minus:
                self.mismatch(node, "-:", left.type, right.type)
            left, right = right, left
        if right.duration is not None:
            return Compiled(
                shift(left.expr, right.duration, self.scope, -1 if minus else 1), TIMESTAMP
            )
        if right.type == NULL:
            return Compiled(pl.lit(None, pl.Int64), TIMESTAMP)
        if right.type.integer or right.type.kind == "BOOL":
            ticks = right.expr.cast(pl.Int64, strict=False)
            return Compiled(tick_sum(left.expr, ticks, minus), TIMESTAMP)
        if right.type.text:
            self.mismatch(node, "-:" if minus else "+:", left.type, right.type)
        a = left.expr.cast(pl.Float64)
        b = self.double(right, node)
        return _finite(a - b if minus else a + b)

    def _product(self, node: exp.Binary, left: Compiled, right: Compiled) -> Compiled:
        a = self.double(left, node.left)
        b = self.double(right, node.right)
        if isinstance(node, exp.Mul):
            return _finite(a * b)
        if isinstance(node, exp.Mod):
            return Compiled(remainder(a, b), DOUBLE)
        return _finite(a / b)

    def _bits(self, node: exp.Binary, left: Compiled, right: Compiled) -> Compiled:
        values = []
        for side, value in ((node.left, left), (node.right, right)):
            if value.type != NULL and not value.type.numeric and value.type.kind != "BOOL":
                self.refuse(
                    side, f"bits of {value.type} cannot be combined with BIGINT", code="E_TYPE"
                )
            values.append(
                pl.lit(None, pl.Int64)
                if value.type == NULL
                else value.expr.cast(pl.Int64, strict=False, wrap_numerical=True)
            )
        return Compiled(
            values[0] & values[1] if isinstance(node, exp.BitwiseAnd) else values[0] | values[1],
            BIGINT,
        )

    # ---------------------------------------------------------------- conditions

    def truth(self, node: exp.Expr) -> pl.Expr:
        """*node* as a condition: BOOL, or a number that is not 0."""
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

    def _logic(self, node: exp.Connector) -> Compiled:
        # Flattened: a chain of hundreds of OR stays shallow.
        parts = [self.truth(p) for p in node.flatten()]
        return Compiled(
            pl.all_horizontal(parts) if isinstance(node, exp.And) else pl.any_horizontal(parts),
            BOOL,
        )

    def _compare(self, node: exp.Binary) -> Compiled:
        left = self.compile(node.left)
        right = self.compile(node.right)
        return Compiled(self.compared(type(node), left, right, node), BOOL)

    def compared(
        self, operator: type[exp.Expr], left: Compiled, right: Compiled, node: exp.Expr
    ) -> pl.Expr:
        a, b = self.alike(left, right, node)
        operations: dict[type[exp.Expr], Callable[[], pl.Expr]] = {
            exp.EQ: lambda: a == b,
            exp.NEQ: lambda: a != b,
            exp.LT: lambda: a < b,
            exp.LTE: lambda: a <= b,
            exp.GT: lambda: a > b,
            exp.GTE: lambda: a >= b,
        }
        return operations[operator]()

    def alike(self, left: Compiled, right: Compiled, node: exp.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Both sides of a comparison in one polars type."""
        if left.type == NULL or right.type == NULL:
            return pl.lit(None, pl.Int64), pl.lit(None, pl.Int64)
        self._no_calendar(left, node)
        self._no_calendar(right, node)
        a = left.type
        b = right.type
        if a == TIMESTAMP or b == TIMESTAMP:
            return self.as_time(left, right, node), self.as_time(right, left, node)
        if a.kind == "VARBINARY" or b.kind == "VARBINARY":
            both = [convert(v, ColumnType("VARBINARY"), self.scope) for v in (left, right)]
            if both[0] is None or both[1] is None:
                self.mismatch(node, "comparison:", a, b)
            return both[0], both[1]
        if a.text and b.text:
            return left.expr, right.expr
        if a.text or b.text:
            return self._text_and_other(left, right, node)
        if a.integer and b.integer and ("UNSIGNED" in a.kind) != ("UNSIGNED" in b.kind):
            return left.expr.cast(pl.Int128), right.expr.cast(pl.Int128)
        if a.kind == "BOOL" and b.kind == "BOOL":
            return left.expr, right.expr
        plain = a.integer and b.integer or a.kind == b.kind == "DECIMAL"
        if plain:
            return left.expr, right.expr
        if "BOOL" in (a.kind, b.kind) and (a.integer or b.integer):
            return left.expr.cast(pl.Int64, strict=False), right.expr.cast(pl.Int64, strict=False)
        return left.expr.cast(pl.Float64), right.expr.cast(pl.Float64)

    def _text_and_other(
        self, left: Compiled, right: Compiled, node: exp.Expr
    ) -> tuple[pl.Expr, pl.Expr]:
        """Text beside a number or BOOL: the text is read as one; a literal that is none is
        refused.
        """
        text, other = (left, right) if left.type.text else (right, left)
        if (
            text.literal
            and other.type.kind == "BOOL"
            and str(text.value).strip().lower() in ("true", "false")
        ):
            read = pl.lit(str(text.value).strip().lower() == "true")
            seen = other.expr
        elif text.literal and not _NUMBER.fullmatch(str(text.value)):
            self.mismatch(
                node,
                "comparison:",
                left.type,
                right.type,
                hint="compare text with text, or write a number",
            )
        else:
            read = text.expr.cast(pl.Float64, strict=False)
            seen = other.expr.cast(pl.Float64)
            if text.type.kind == "JSON":
                word = text.expr.replace_strict(
                    ["true", "false"], [1.0, 0.0], default=None, return_dtype=pl.Float64
                )
                read = pl.when(read.is_null()).then(word).otherwise(read)
        return (read, seen) if left.type.text else (seen, read)

    def as_time(self, value: Compiled, beside: Compiled, node: exp.Expr) -> pl.Expr:
        """*value* as ticks, to stand beside a time."""
        if value.type == TIMESTAMP or value.type.integer:
            return value.expr.cast(pl.Int64, strict=False)
        if value.type.kind in ("FLOAT", "DOUBLE", "DECIMAL"):
            return value.expr.cast(pl.Float64)
        if value.literal and value.value is None:
            return pl.lit(None, pl.Int64)
        if value.literal and value.type.text:
            ticks = pl.select(parse_iso(pl.lit(value.value), self.scope)).item()
            if ticks is None:
                self.refuse(
                    node,
                    f"'{value.value}' is no time",
                    code="E_TYPE",
                    detail=f"comparison: {beside.type} and {value.type} do not fit",
                    hint=(
                        "write '2024-01-31 12:00:00', with an offset such as +08:00 if it is not"
                        " local time"
                    ),
                )
            return pl.lit(ticks, pl.Int64)
        if value.type.text:
            return parse_iso(value.expr, self.scope)
        self.mismatch(node, "comparison:", beside.type, value.type)

    def _between(self, node: exp.Between) -> Compiled:
        value = self.compile(node.this)
        low = self.compile(node.args["low"])
        high = self.compile(node.args["high"])
        above = self.compared(exp.GTE, value, low, node)
        return Compiled(above & self.compared(exp.LTE, value, high, node), BOOL)

    def _in(self, node: exp.In) -> Compiled:
        if node.args.get("query") is not None or not node.expressions:
            self.refuse(
                node, "IN takes a list of values here, not a query", code="E_UNSUPPORTED_EXPRESSION"
            )
        value = self.compile(node.this)
        items = [self.compile(e) for e in node.expressions]
        known = [i for i in items if i.type != NULL]
        if value.type == NULL:
            return Compiled(pl.lit(None, pl.Boolean), BOOL)
        hit = (
            pl.any_horizontal([self.compared(exp.EQ, value, i, node) for i in known])
            if known
            else pl.lit(value=False)
        )
        if (
            len(known) > 8
            and all(i.literal and i.type.integer and i.duration is None for i in known)
            and value.type.integer
        ):
            # A long list of numbers is one set look-up.
            hit = value.expr.cast(pl.Int128).is_in(
                pl.Series([i.value for i in known], dtype=pl.Int128).implode()
            )
        elif len(known) > 8 and value.type.text and all(i.literal and i.type.text for i in known):
            hit = value.expr.is_in(pl.Series([i.value for i in known], dtype=pl.String).implode())
        if len(known) < len(items):
            hit = pl.when(hit).then(pl.lit(value=True)).otherwise(pl.lit(None, pl.Boolean))
        return Compiled(hit, BOOL)

    def _is(self, node: exp.Is) -> Compiled:
        return Compiled(self.compile(node.this).expr.is_null(), BOOL)

    def text(self, node: exp.Expr, what: str) -> pl.Expr:
        value = self.compile(node)
        if value.type == NULL:
            return pl.lit(None, pl.String)
        if not value.type.text:
            self.refuse(
                node,
                f"{what} needs text, not {value.type}",
                code="E_TYPE",
                detail=f"{value.type} and VARCHAR do not fit",
                hint="write CAST(… AS VARCHAR(64))",
            )
        return value.expr

    def _pattern(self, node: exp.Expr, what: str) -> str | None:
        value = self.compile(node)
        if value.type == NULL:
            return None
        if not value.literal or not isinstance(value.value, str):
            self.refuse(
                node,
                f"the pattern of {what} must be a text constant",
                code="E_TYPE",
                detail=f"found {value.type}",
            )
        if len(value.value) > _MAX_PATTERN:
            self.refuse(
                node,
                f"the pattern of {what} is longer than {_MAX_PATTERN} characters",
                code="E_PATTERN",
            )
        return value.value

    def _like(self, node: exp.Like) -> Compiled:
        text = self.text(node.this, "LIKE")
        pattern = self._pattern(node.expression, "LIKE")
        if pattern is None:
            return Compiled(pl.lit(None, pl.Boolean), BOOL)
        return Compiled(text.str.contains(like_pattern(pattern)), BOOL)

    def _match(self, node: nodes.MatchRegex) -> Compiled:
        text = self.text(node.this, "MATCH")
        pattern = self._pattern(node.expression, "MATCH")
        if pattern is None:
            return Compiled(pl.lit(None, pl.Boolean), BOOL)
        self.check_regex(pattern, node.expression)
        return Compiled(text.str.contains(pattern), BOOL)

    def check_regex(self, pattern: str, node: exp.Expr) -> None:
        try:
            pl.select(pl.lit("").str.contains(pattern))
        except pl.exceptions.ComputeError as error:
            self.refuse(
                node,
                "the regular expression cannot be read",
                code="E_PATTERN",
                detail=str(error).split("\n")[0],
            )

    def _contains(self, node: nodes.ContainsKey) -> Compiled:
        value = self.compile(node.this)
        key = self._pattern(node.expression, "CONTAINS")
        if value.type.kind != "JSON":
            self.refuse(node.this, f"CONTAINS needs a JSON tag, not {value.type}", code="E_TYPE")
        found = value.expr.str.json_path_match(self._json_path(key or "", node)).is_not_null()
        # A key whose value is null is there too.
        null = value.expr.str.contains(f'(?s)"{re.escape(key or "")}"\\s*:\\s*null')
        return Compiled(found | null, BOOL)

    def _json(self, node: exp.JSONExtract) -> Compiled:
        value = self.compile(node.this)
        if value.type.kind != "JSON":
            self.refuse(
                node.this,
                f"-> needs a JSON tag, not {value.type}",
                code="E_TYPE",
                detail=f"{value.type} is not JSON",
            )
        key = node.expression.name
        return Compiled(
            value.expr.str.json_path_match(self._json_path(key, node)), ColumnType("JSON")
        )

    def _json_path(self, key: str, node: exp.Expr) -> str:
        """The JSON path of a key; paths know no escapes, so the quote is the one that the key does
        not have.
        """
        quote = '"' if '"' not in key else "'"
        if quote in key or "\\" in key:
            self.refuse(
                node,
                "this key cannot be looked up",
                code="E_PATTERN",
                hint="a key has no backslash, and not both kinds of quotes",
            )
        return f"$[{quote}{key}{quote}]"

    # ---------------------------------------------------------------- CASE, CAST and calls

    def _case(self, node: exp.Case) -> Compiled:
        subject = self.compile(node.this) if node.this is not None else None
        branches = []
        for branch in node.args["ifs"]:
            if subject is None:
                condition = self.truth(branch.this)
            else:
                condition = self.compared(exp.EQ, subject, self.compile(branch.this), branch)
            branches.append((condition, self.compile(branch.args["true"])))
        default = node.args.get("default")
        last = self.compile(default) if default is not None else Compiled(pl.lit(None), NULL)
        kinds = [value.type for _, value in branches] + [last.type]
        kind = common(kinds)
        if kind is None:
            names = " and ".join(dict.fromkeys(str(k) for k in kinds if k != NULL))
            self.refuse(
                node,
                f"CASE cannot choose between {names}",
                code="E_TYPE",
                hint="convert them to one type with CAST",
            )
        if kind == NULL:
            return Compiled(pl.lit(None), NULL)
        out = as_type(last, kind) if last.type != NULL else pl.lit(None, kind.polars())
        for condition, value in reversed(branches):
            chosen = as_type(value, kind) if value.type != NULL else pl.lit(None, kind.polars())
            out = pl.when(condition).then(chosen).otherwise(out)
        return Compiled(out, kind)

    def _cast(self, node: exp.Cast) -> Compiled:
        value = self.compile(node.this)
        self._no_calendar(value, node)
        to = QueryParser(tokenize(node.args["to"].name), Source()).column_type(default_length=0)
        if to.sized and not to.length:
            to = ColumnType(
                to.kind, length=min(max(value.type.length if value.type.sized else 64, 1), MAX_TEXT)
            )
        made = convert(value, to, self.scope) if to.kind != "JSON" else None
        if made is None:
            self.mismatch(
                node,
                "CAST:",
                value.type,
                to,
                hint="there is no such conversion; go through VARCHAR",
            )
        return Compiled(made, to)

    def _trim(self, node: exp.Trim) -> Compiled:
        what = (
            node.expression if node.args.get("expression") is not None else exp.Literal.string(" ")
        )
        side = exp.Literal.string(node.args.get("position") or "BOTH")
        call = exp.Anonymous(this="trim", expressions=[node.this.copy(), side, what.copy()])
        call.meta.update(node.meta)
        return self._call(call)

    def _call(self, node: exp.Anonymous) -> Compiled:
        name = str(node.this).lower()
        function = REGISTRY.get(name)
        if function is None:
            user = self.functions(name)
            if user is not None:
                return self._user_call(user, node)
            self._unknown_function(node, name)
        least, most = function.arity
        if not least <= len(node.expressions) <= most:
            wanted = (
                str(least)
                if least == most
                else f"{least} to {most}"
                if most < 1 << 20
                else f"{least} or more"
            )
            self.refuse(
                node,
                f"{name}() takes {wanted} arguments, not {len(node.expressions)}",
                code="E_FUNCTION_ARGUMENT",
                hint=f"{function.signature}: {function.doc.splitlines()[0]}",
            )
        args = tuple(self._argument(function, i, e) for i, e in enumerate(node.expressions))
        call = Call(name, args, self.scope, node)
        kinds = [a.type for a in args]
        kind = (
            function.returns
            if isinstance(function.returns, ColumnType)
            else function.returns(kinds, call)
        )
        if kind == NULL:
            return Compiled(pl.lit(None), NULL)
        return Compiled(function.build(call).cast(kind.polars(), strict=False), kind)

    def _user_call(self, function: UserFunction, node: exp.Anonymous) -> Compiled:
        """A function of somebody's own, run in its sandbox (`penstock.udf`)."""
        wanted = ", ".join(str(p) for p in function.parameters)
        if function.aggregate:
            self.refuse(
                node,
                f"{function.name}() is an aggregate and cannot stand here",
                code="E_AGGREGATE_HERE",
                hint=(
                    "aggregates belong into the select list of a stream with a window, and not into"
                    " each other"
                ),
            )
        if len(node.expressions) != len(function.parameters):
            message = (
                f"{function.name}() takes {len(function.parameters)} arguments, not"
                f" {len(node.expressions)}"
            )
            self.refuse(
                node, message, code="E_FUNCTION_ARGUMENT", hint=f"{function.name}({wanted})"
            )
        arguments = []
        for i, (expression, kind) in enumerate(
            zip(node.expressions, function.parameters, strict=True)
        ):
            value = self.compile(expression)
            made = value.expr if value.type == kind else convert(value, kind, self.scope)
            if made is None:
                self.mismatch(
                    expression, f"argument {i + 1} of {function.name}():", value.type, kind
                )
            arguments.append(made.cast(kind.polars(), strict=False).alias(f"a{i}"))
        if not any(a.meta.root_names() for a in arguments):
            self.refuse(
                node,
                f"{function.name}() needs a column among its arguments",
                code="E_FUNCTION_ARGUMENT",
            )
        call = pl.struct(arguments).map_batches(
            partial(sandbox.scalar, function), return_dtype=function.returns.polars()
        )
        return Compiled(call, function.returns)

    def _argument(self, function: Function, index: int, node: exp.Expr) -> Compiled:
        parameter = function.parameters[min(index, len(function.parameters) - 1)]
        value = self.compile(node)
        if parameter.literal and not value.literal:
            self.refuse(
                node,
                f"argument {index + 1} of {function.name}() must be a constant",
                code="E_FUNCTION_ARGUMENT",
                hint=function.signature,
            )
        if function.name == "regexp_in_set" and index == 0 and isinstance(value.value, str):
            self.check_regex(value.value, node)
        return self._coerced(parameter, value, function, index, node)

    def _coerced(
        self, parameter: Parameter, value: Compiled, function: Function, index: int, node: exp.Expr
    ) -> Compiled:
        """*value* as what the parameter asks for; see `functions.base`."""
        kind = value.type
        known = value.type != NULL
        if parameter.kind == "any":
            return value
        if parameter.kind == "unit":
            if known and value.duration is None:
                self._bad_argument(
                    parameter, value, function, index, node, "write a duration such as 1s, 1h or 1d"
                )
            return value
        if parameter.kind == "bool":
            return Compiled(self.truth(node), BOOL)
        if parameter.kind == "number":
            if known and not kind.numeric and kind.kind not in ("BOOL", "JSON"):
                self._bad_argument(
                    parameter, value, function, index, node, "write CAST(… AS DOUBLE)"
                )
            if kind.kind in ("BOOL", "DECIMAL", "JSON", "NULL"):
                to = ColumnType("INT") if kind.kind == "BOOL" else DOUBLE
                return Compiled(
                    value.expr.cast(to.polars(), strict=False), to, value.literal, value.value
                )
            return value
        if parameter.kind == "double":
            return Compiled(self.double(value, node), DOUBLE, value.literal, value.value)
        if parameter.kind == "integer":
            if (
                known
                and not kind.integer
                and kind.kind not in ("BOOL", "TIMESTAMP")
                and not (function.name == "char" and kind.text)
            ):
                if kind.kind not in ("FLOAT", "DOUBLE", "DECIMAL"):
                    self._bad_argument(
                        parameter, value, function, index, node, "write CAST(… AS BIGINT)"
                    )
            made = convert(value, BIGINT, self.scope)
            number = int(value.value) if isinstance(value.value, int | float) else value.value
            return Compiled(made if made is not None else value.expr, BIGINT, value.literal, number)
        if parameter.kind == "text":
            if known and not kind.text:
                self._bad_argument(
                    parameter, value, function, index, node, "write CAST(… AS VARCHAR(64))"
                )
            return Compiled(
                value.expr.cast(pl.String),
                kind if known else ColumnType("VARCHAR", length=1),
                value.literal,
                value.value,
            )
        if known and not (kind == TIMESTAMP or kind.integer or kind.text):
            self._bad_argument(
                parameter, value, function, index, node, "a TIMESTAMP, ticks, or ISO text is needed"
            )
        ticks = (
            parse_iso(value.expr.cast(pl.String), self.scope)
            if kind.text
            else value.expr.cast(pl.Int64, strict=False)
        )
        return Compiled(ticks, TIMESTAMP, value.literal, value.value)

    def _bad_argument(
        self,
        wanted: Parameter,
        value: Compiled,
        function: Function,
        index: int,
        node: exp.Expr,
        hint: str,
    ) -> NoReturn:
        self.refuse(
            node,
            f"argument {index + 1} of {function.name}() is {value.type}, but it takes"
            f" {wanted.kind}",
            code="E_TYPE",
            detail=function.signature,
            hint=hint,
        )

    def _unknown_function(self, node: exp.Anonymous, name: str) -> NoReturn:
        if name in FORBIDDEN:
            why, instead = FORBIDDEN[name]
            self.refuse(
                node,
                f"{name}() is not possible in a stream: {why}",
                code="E_FORBIDDEN_FUNC",
                hint=f"instead: {instead}",
            )
        if name in RANDOM:
            self.refuse(
                node,
                f"{name}() is not possible in a stream: a replay would give another result",
                code="E_FORBIDDEN_FUNC",
            )
        if name in AGGREGATES:
            self.refuse(
                node,
                f"{name}() is an aggregate and cannot stand here",
                code="E_AGGREGATE_HERE",
                hint=(
                    "aggregates belong into the select list of a stream with a window, and not into"
                    " each other"
                ),
            )
        near = nearest(name, [*REGISTRY, *AGGREGATES])
        self.refuse(
            node,
            f"there is no function {name}()",
            code="E_UNKNOWN_FUNCTION",
            hint=f"did you mean {near}()?" if near else "",
        )


def _number(text: str, sign: int) -> Compiled:
    """A number literal: the smallest of INT, BIGINT, BIGINT UNSIGNED that holds it, else DOUBLE."""
    value: Any
    if text.lower().startswith(("0x", "0b")):
        value = sign * int(text, 0)
    elif re.fullmatch(r"\d+", text):
        value = sign * int(text)
    else:
        value = sign * float(Decimal(text))
    if isinstance(value, int):
        for kind, low, high in (
            ("INT", -(2**31), 2**31),
            ("BIGINT", -(2**63), 2**63),
            ("BIGINT UNSIGNED", 0, 2**64),
        ):
            if low <= value < high:
                made = ColumnType(kind)
                return Compiled(pl.lit(value, made.polars()), made, literal=True, value=value)
        value = float(value)
    return Compiled(pl.lit(value, pl.Float64), DOUBLE, literal=True, value=value)

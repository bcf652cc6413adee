"""DuckDB's text of an expression, printed from its nodes.

The printer knows the node types that an expression of a query may have and refuses every other, so
nothing of a tree is carried along as text: identifiers and strings are quoted, numbers have the
form of numbers, functions are those that the caller names. Comments are not printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from sqlglot import exp

from penstock.duck.functions import write_call
from penstock.duck.over import write_filter, write_window
from penstock.duck.quoting import impossible, literal, quote, text_value
from penstock.errors import SqlSemanticError
from penstock.sql import nodes
from penstock.sql.free_literals import free_number
from penstock.sql.functions.text import like_pattern
from penstock.sql.relational import PlannedQuery, QueryPlan

_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F]+|0[bB][01]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?"
)
_TYPE = re.compile(r"[A-Z][A-Z0-9_ ]*(?:\(\d+(?:, ?\d+)?\))?")
_UNITS = frozenset(
    (
        "NANOSECOND",
        "MICROSECOND",
        "MILLISECOND",
        "SECOND",
        "MINUTE",
        "HOUR",
        "DAY",
        "WEEK",
        "MONTH",
        "YEAR",
    )
)
_SIDES = frozenset(("LEADING", "TRAILING", "BOTH"))
#: operators of one rank, which may stand in a row without parentheses
_RANKS: tuple[dict[type[exp.Expr], str], ...] = (
    {exp.Or: "OR"},
    {exp.And: "AND"},
    {exp.BitwiseAnd: "&", exp.BitwiseOr: "|"},
    {exp.Add: "+", exp.Sub: "-"},
    {exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "//"},
    {exp.DPipe: "||"},
)
_CHAINED = {kind: rank for rank in _RANKS for kind in rank}
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.Is: "IS",
    exp.JSONExtract: "->",
}
#: what stands in an operator as it is; everything else gets parentheses
_CLOSED = (
    exp.Column,
    exp.Literal,
    nodes.BinaryLiteral,
    exp.Null,
    exp.Boolean,
    exp.Anonymous,
    exp.Paren,
    exp.Subquery,
    exp.Cast,
    exp.Case,
    exp.Trim,
    exp.Exists,
    exp.Window,
)


class ExpressionPrinter:
    """Prints expressions. Recursion follows nesting, which the grammar bounds; chains of operators
    are printed in a loop.
    """

    def __init__(self, functions: Collection[str], query: Callable[[QueryPlan], str]) -> None:
        """Make a printer.

        Args:
            functions: names of the functions that may be called, in lower case.
            query: prints a query inside an expression.
        """
        self._functions = functions
        self._query = query
        self._printers: dict[type[exp.Expr], Callable[..., str]] = {
            exp.Anonymous: self._call,
            exp.AtTimeZone: lambda e: (
                f"({self._operand(e.this)} AT TIME ZONE {self.sql(e.args['zone'])})"
            ),
            exp.Between: lambda e: " ".join(
                (
                    self._operand(e.this),
                    "BETWEEN",
                    self._operand(e.args["low"]),
                    "AND",
                    self._operand(e.args["high"]),
                )
            ),
            exp.Boolean: lambda e: "TRUE" if e.this else "FALSE",
            exp.Case: self._case,
            exp.Cast: lambda e: f"CAST({self.sql(e.this)} AS {self._type(e.args['to'])})",
            exp.Column: self._column,
            exp.TryCast: lambda e: f"TRY_CAST({self.sql(e.this)} AS {self._type(e.args['to'])})",
            exp.Distinct: lambda e: "DISTINCT " + self.several(e.expressions),
            exp.Exists: lambda e: f"EXISTS{self._in_parentheses(e.this)}",
            exp.Filter: lambda e: write_filter(self.sql, e),
            exp.In: self._in,
            exp.Interval: self._interval,
            exp.Like: self._like,
            exp.Literal: self._literal,
            nodes.BinaryLiteral: lambda e: f"unhex({literal(e.name)})",
            nodes.MatchRegex: lambda e: (
                f"regexp_matches({self.sql(e.this)}, {self.sql(e.expression)})"
            ),
            exp.Neg: lambda e: f"-({self.sql(e.this)})",
            exp.Not: lambda e: f"NOT {self._operand(e.this)}",
            exp.Null: lambda e: "NULL",
            exp.Ordered: self._order_item,
            exp.Paren: lambda e: f"({self.sql(e.this)})",
            exp.Star: self._star,
            exp.Subquery: lambda e: self._in_parentheses(e.this),
            exp.Trim: self._trim,
            exp.Window: lambda e: write_window(self.sql, e),
        }

    def sql(self, node: object) -> str:
        """Return the text of one expression."""
        kind = type(node)
        if kind in _CHAINED:
            assert isinstance(node, exp.Binary)
            return self._chain(node)
        if kind in _COMPARISONS:
            assert isinstance(node, exp.Binary)
            return (
                f"{self._operand(node.this)} {_COMPARISONS[kind]} {self._operand(node.expression)}"
            )
        printer = self._printers.get(kind)  # type: ignore[arg-type]
        if printer is None:
            raise impossible(getattr(node, "key", kind.__name__).upper())
        return printer(node)

    def several(self, items: Iterable[object]) -> str:
        """Return the text of expressions with commas between them."""
        return ", ".join([self.sql(item) for item in items])

    def count(self, node: object) -> str:
        """Return the text of a number of rows."""
        return self._literal(node)

    def _in_parentheses(self, node: object) -> str:
        if isinstance(node, exp.Subquery):  # it has its own
            return self.sql(node)
        if not isinstance(node, PlannedQuery):
            raise impossible("this subquery")
        return f"({self._query(node.args['plan'])})"

    def _operand(self, node: object) -> str:
        text = self.sql(node)
        return text if isinstance(node, _CLOSED) else f"({text})"

    def _chain(self, node: exp.Binary) -> str:
        rank = _CHAINED[type(node)]
        parts: list[str] = []
        left: object = node
        while isinstance(left, exp.Binary) and type(left) in rank:
            parts += (self._operand(left.expression), rank[type(left)])
            left = left.this
        parts.append(self._operand(left))
        return " ".join(reversed(parts))

    def _identifier(self, node: object) -> str:
        if not isinstance(node, exp.Identifier):
            raise impossible("this name")
        return quote(node.this)

    def _column(self, node: exp.Column) -> str:
        places = [
            self._identifier(node.args[key])
            for key in ("catalog", "db", "table")
            if node.args.get(key) is not None
        ]
        own = "*" if isinstance(node.this, exp.Star) else self._identifier(node.this)
        return ".".join([*places, own])

    def _star(self, node: exp.Star) -> str:
        if any(value and key != "except_" for key, value in node.args.items()):
            raise impossible("this *")
        left_out = node.args.get("except_") or []
        return (
            f"* EXCLUDE ({', '.join([self._identifier(i) for i in left_out])})" if left_out else "*"
        )

    def _literal(self, node: object) -> str:
        if not isinstance(node, exp.Literal):
            raise impossible("this value")
        number = free_number(node)
        if number is not None:
            return f"${number}"
        if node.is_string:
            return text_value(node.this)
        if not _NUMBER.fullmatch(str(node.this)):
            raise impossible("this number")
        return str(node.this)

    def _call(self, node: exp.Anonymous) -> str:
        name = str(node.this).lower()
        if name not in self._functions:
            raise SqlSemanticError(
                f"there is no function {name[:80]}() in a query", code="E_UNKNOWN_FUNCTION"
            )
        return write_call(name, [self.sql(a) for a in node.expressions])

    def _like(self, node: exp.Like) -> str:
        """LIKE as DuckDB does it where that takes linear time; `_` and `%` mixed are a regular
        expression, which always does.
        """
        text = self._operand(node.this)
        pattern = node.expression
        if isinstance(pattern, exp.Null):
            return f"{text} LIKE NULL"
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            raise SqlSemanticError(
                "the pattern of LIKE must be a constant",
                code="E_FUNCTION_ARGUMENT",
                hint="write it as a string",
            )
        wanted = str(pattern.this)
        if "\\" not in wanted and ("_" not in wanted or "%" not in wanted.strip("%")):
            return f"{text} LIKE {text_value(wanted)}"
        return f"regexp_matches({text}, {text_value(like_pattern(re.sub('%+', '%', wanted)))})"

    def _type(self, node: object) -> str:
        text = node.sql(dialect="duckdb") if isinstance(node, exp.DataType) else ""
        if not _TYPE.fullmatch(text):
            raise impossible("this type")
        return text

    def _interval(self, node: exp.Interval) -> str:
        unit = node.args["unit"].name.upper()
        if unit not in _UNITS:
            raise impossible("this unit")
        return f"INTERVAL {self._literal(node.this)} {unit}"

    def _case(self, node: exp.Case) -> str:
        parts = ["CASE"]
        if node.args.get("this") is not None:
            parts.append(self.sql(node.this))
        for branch in node.args["ifs"]:
            parts.append(f"WHEN {self.sql(branch.this)} THEN {self.sql(branch.args['true'])}")
        if node.args.get("default") is not None:
            parts.append(f"ELSE {self.sql(node.args['default'])}")
        return " ".join([*parts, "END"])

    def _in(self, node: exp.In) -> str:
        query = node.args.get("query")
        inner = self.sql(query) if query is not None else f"({self.several(node.expressions)})"
        return f"{self._operand(node.this)} IN {inner}"

    def _trim(self, node: exp.Trim) -> str:
        side = node.args.get("position")
        what = node.args.get("expression")
        if side is not None and side not in _SIDES:
            raise impossible("this side")
        return (
            f"trim({side or 'BOTH'} {self.sql(what) if what is not None else literal(' ')} FROM"
            f" {self.sql(node.this)})"
        )

    def _order_item(self, node: exp.Ordered) -> str:
        nulls = {True: " NULLS FIRST", False: " NULLS LAST", None: ""}[node.args.get("nulls_first")]
        return f"{self.sql(node.this)}{' DESC' if node.args.get('desc') else ''}{nulls}"

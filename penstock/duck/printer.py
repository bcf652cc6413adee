"""DuckDB's text of a query, printed from its tree.

The printer knows the node types that a query may have and refuses every other, so nothing of a tree
is carried along as text: identifiers and strings are quoted, numbers have the form of numbers,
functions and relations are those that the caller names. Comments are not printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from sqlglot import exp

from penstock.errors import SqlSemanticError
from penstock.sql import nodes
from penstock.sql.functions import AGGREGATES, QUERY_ONLY, REGISTRY
from penstock.sql.functions.base import MAX_TEXT
from penstock.sql.functions.text import like_pattern

#: functions of DuckDB's that the translation of the dialect's own functions needs
_MADE = frozenset(
    (
        "approx_count_distinct",
        "approx_quantile",
        "arg_max",
        "arg_max_null",
        "arg_min",
        "ceil",
        "coalesce",
        "dayofweek",
        "epoch_ms",
        "epoch_us",
        "greatest",
        "isodow",
        "length",
        "ln",
        "log",
        "make_timestamp",
        "make_timestamp_ms",
        "make_timestamp_ns",
        "now",
        "regexp_full_match",
        "regexp_matches",
        "stddev_pop",
        "strftime",
        "strlen",
        "strpos",
        "substring",
        "time_bucket",
        "trunc",
        "try",
        "var_pop",
    )
)
#: every function that DuckDB may be asked to call
FUNCTIONS = _MADE | REGISTRY.keys() | AGGREGATES.keys() | QUERY_ONLY.keys()
#: clauses of a SELECT that DuckDB does not have: they were computed before, or mean nothing here
_ELSEWHERE = frozenset(("partition_by", "window", "fill", "open_windows", "slimit", "soffset"))
_CLAUSES = _ELSEWHERE | {
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "distinct",
}
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
_JOIN_WORDS = {
    "method": frozenset(("ASOF",)),
    "side": frozenset(("LEFT", "RIGHT", "FULL")),
    "kind": frozenset(("INNER", "CROSS", "OUTER", "SEMI", "ANTI")),
}
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
#: characters of arguments that are written more than once
_LARGEST = 1 << 20


def _concat(*texts: str) -> str:
    """NULL when any part is; a text is no longer than a VARCHAR can be, or it would double with
    every level of a query.
    """
    return f"left({' || '.join(f'CAST({t} AS VARCHAR)' for t in texts)}, {MAX_TEXT})"


def _concat_ws(*texts: str) -> str:
    return f"left(concat_ws({', '.join(texts)}), {MAX_TEXT})"


def _repeat(text: str, count: str) -> str:
    """As often as it fits."""
    return f"repeat({text}, least({count}, {MAX_TEXT} // greatest(strlen({text}), 1)))"


def _replace(text: str, old: str, new: str) -> str:
    """NULL where it is longer than a VARCHAR can be; what is put in may be longer than what goes,
    so the places are counted first.
    """
    places = (
        f"((strlen({text}) - strlen(replace({text}, {old}, ''))) // greatest(strlen({old}), 1))"
    )
    grown = f"strlen({text}) + {places} * greatest(strlen({new}) - strlen({old}), 0) > {MAX_TEXT}"
    # inside the call, because the branches of a CASE over constants are all computed
    return f"replace({text}, {old}, CASE WHEN {grown} THEN NULL ELSE {new} END)"


def _cut(name: str) -> Callable[[str], str]:
    return lambda value: f"left({name}({value}), {MAX_TEXT})"


#: functions whose result may be longer than what they are given: (fewest and most arguments, how
#: they are written)
_BOUNDED: dict[str, tuple[int, int, Callable[..., str]]] = {
    "concat": (1, 1000, _concat),
    "concat_ws": (2, 1000, _concat_ws),
    "repeat": (2, 2, _repeat),
    "replace": (3, 3, _replace),
    "bin": (1, 1, _cut("bin")),
    "hex": (1, 1, _cut("hex")),
    # the text itself, as in streams; DuckDB's own quotes it, and quotes double with every level
    "to_json": (1, 1, lambda text: f"CAST({text} AS VARCHAR)"),
}
#: what stands in an operator as it is; everything else gets parentheses
_CLOSED = (
    exp.Column,
    exp.Literal,
    exp.Null,
    exp.Boolean,
    exp.Anonymous,
    exp.Paren,
    exp.Subquery,
    exp.Cast,
    exp.Case,
    exp.Trim,
    exp.Exists,
)


def printed(tree: exp.Query, relations: Collection[str], functions: Collection[str] = ()) -> str:
    """DuckDB's text of *tree*.

    Args:
        relations: names of the relations that it may read, all of them registered by the caller.
        functions: names of functions that it may call besides the dialect's own.

    Raises:
        SqlSemanticError: it holds anything that a query may not have.
    """
    return _Printer(
        {r.lower() for r in relations}, FUNCTIONS | {f.lower() for f in functions}
    ).query(tree)


def quote(name: str) -> str:
    """*name* as DuckDB's identifier."""
    return '"' + _clean(name).replace('"', '""') + '"'


def literal(text: str) -> str:
    """*text* as DuckDB's string."""
    return "'" + _clean(text).replace("'", "''") + "'"


def _clean(text: object) -> str:
    if not isinstance(text, str) or "\0" in text or not _encodes(text):
        raise SqlSemanticError(
            "a name or text in a query has a character that it may not have", code="E_QUERY"
        )
    return text


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse(what: str) -> SqlSemanticError:
    return SqlSemanticError(
        f"{what} is not possible in a query",
        code="E_QUERY",
        hint="docs/sql.md lists what a query may have",
    )


class _Printer:
    """Prints one tree. Recursion follows nesting, which the grammar bounds; chains of operators are
    printed in a loop.
    """

    def __init__(self, relations: Collection[str], functions: Collection[str]) -> None:
        self._relations = relations
        self._functions = functions
        self._printers: dict[type[exp.Expr], Callable[..., str]] = {
            exp.Alias: lambda e: f"{self.sql(e.this)} AS {self._identifier(e.args['alias'])}",
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
            exp.Distinct: lambda e: "DISTINCT " + self._listed(e.expressions),
            exp.Exists: lambda e: f"EXISTS({self.query(e.this)})",
            exp.In: self._in,
            exp.Interval: self._interval,
            exp.Like: self._like,
            exp.Literal: self._literal,
            nodes.MatchRegex: lambda e: (
                f"regexp_matches({self.sql(e.this)}, {self.sql(e.expression)})"
            ),
            exp.Neg: lambda e: f"-({self.sql(e.this)})",
            exp.Not: lambda e: f"NOT {self._operand(e.this)}",
            exp.Null: lambda e: "NULL",
            exp.Ordered: self._ordered,
            exp.Paren: lambda e: f"({self.sql(e.this)})",
            exp.Star: self._star,
            exp.Subquery: self._subquery,
            exp.Table: self._table,
            exp.Trim: self._trim,
        }

    def sql(self, node: object) -> str:
        """Text of one expression or relation."""
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
            raise _refuse(getattr(node, "key", kind.__name__).upper())
        return printer(node)

    def query(self, node: object) -> str:
        """Text of a SELECT or a UNION."""
        if isinstance(node, exp.Subquery):
            return self._subquery(node)
        if type(node) is exp.Union:
            left, right = (self._term(side) for side in (node.this, node.args["expression"]))
            text = f"{left} UNION {'' if node.args.get('distinct') else 'ALL '}{right}"
            return text + self._tail(node)
        if type(node) is not exp.Select:
            raise _refuse(getattr(node, "key", type(node).__name__).upper())
        for key, value in node.args.items():
            if value and key not in _CLAUSES:
                raise _refuse(key.upper())
        parts = [
            "SELECT DISTINCT" if node.args.get("distinct") else "SELECT",
            self._listed(node.expressions),
        ]
        source = node.args.get("from_")
        if source is not None:
            parts.append(
                "FROM "
                + self.sql(source.this)
                + "".join(self._join(j) for j in node.args.get("joins") or [])
            )
        for key, word in (("where", "WHERE"), ("group", "GROUP BY"), ("having", "HAVING")):
            clause = node.args.get(key)
            if clause is not None:
                said = self._listed(clause.expressions) if key == "group" else self.sql(clause.this)
                parts.append(f"{word} {said}")
        return " ".join(parts) + self._tail(node)

    def _term(self, node: object) -> str:
        text = self.query(node)
        tail = isinstance(node, exp.Query) and any(
            node.args.get(k) is not None for k in ("order", "limit", "offset")
        )
        return f"({text})" if tail and not isinstance(node, exp.Subquery) else text

    def _tail(self, node: exp.Query) -> str:
        text = ""
        if node.args.get("order") is not None:
            text += " ORDER BY " + self._listed(node.args["order"].expressions)
        for key in ("limit", "offset"):
            if node.args.get(key) is not None:
                text += f" {key.upper()} {self._literal(node.args[key].expression)}"
        return text

    def _listed(self, items: Sequence[object]) -> str:
        return ", ".join([self.sql(item) for item in items])

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
            raise _refuse("this name")
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
            raise _refuse("this *")
        left_out = node.args.get("except_") or []
        return (
            f"* EXCLUDE ({', '.join([self._identifier(i) for i in left_out])})" if left_out else "*"
        )

    def _literal(self, node: object) -> str:
        if not isinstance(node, exp.Literal):
            raise _refuse("this value")
        if node.is_string:
            return literal(node.this)
        if not _NUMBER.fullmatch(str(node.this)):
            raise _refuse("this number")
        return str(node.this)

    def _call(self, node: exp.Anonymous) -> str:
        name = str(node.this).lower()
        if name not in self._functions:
            raise SqlSemanticError(
                f"there is no function {name[:80]}() in a query", code="E_UNKNOWN_FUNCTION"
            )
        bounded = _BOUNDED.get(name)
        arguments = [self.sql(a) for a in node.expressions]
        if bounded is None:
            return f"{quote(name) if name.startswith('_') else name}({', '.join(arguments)})"
        least, most, write = bounded
        if not least <= len(arguments) <= most:
            raise SqlSemanticError(
                f"{name}() does not take {len(arguments)} arguments", code="E_FUNCTION_ARGUMENT"
            )
        # what is written several times doubles with each level of nesting
        if sum(map(len, arguments)) > _LARGEST:
            raise SqlSemanticError(
                f"{name}() is nested too deeply",
                code="E_FUNCTION_ARGUMENT",
                hint="use a subquery for the inner value",
            )
        return write(*arguments)

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
            return f"{text} LIKE {literal(wanted)}"
        return f"regexp_matches({text}, {literal(like_pattern(re.sub('%+', '%', wanted)))})"

    def _type(self, node: object) -> str:
        text = node.sql(dialect="duckdb") if isinstance(node, exp.DataType) else ""
        if not _TYPE.fullmatch(text):
            raise _refuse("this type")
        return text

    def _interval(self, node: exp.Interval) -> str:
        unit = node.args["unit"].name.upper()
        if unit not in _UNITS:
            raise _refuse("this unit")
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
        inner = self.sql(query) if query is not None else f"({self._listed(node.expressions)})"
        return f"{self._operand(node.this)} IN {inner}"

    def _trim(self, node: exp.Trim) -> str:
        side = node.args.get("position")
        what = node.args.get("expression")
        if side is not None and side not in _SIDES:
            raise _refuse("this side")
        return (
            f"trim({side or 'BOTH'} {self.sql(what) if what is not None else literal(' ')} FROM"
            f" {self.sql(node.this)})"
        )

    def _ordered(self, node: exp.Ordered) -> str:
        nulls = {True: " NULLS FIRST", False: " NULLS LAST", None: ""}[node.args.get("nulls_first")]
        return f"{self.sql(node.this)}{' DESC' if node.args.get('desc') else ''}{nulls}"

    def _subquery(self, node: exp.Subquery) -> str:
        return f"({self.query(node.this)}){self._aliased(node)}" + self._tail(node)

    def _table(self, node: exp.Table) -> str:
        if (
            node.args.get("db") is not None
            or node.args.get("catalog") is not None
            or node.name.lower() not in self._relations
        ):
            raise SqlSemanticError(f'table "{node.name}" does not exist', code="E_TABLE_NOT_EXIST")
        return self._identifier(node.this) + self._aliased(node)

    def _aliased(self, node: exp.Expr) -> str:
        alias = node.args.get("alias")
        if alias is None:
            return ""
        if not isinstance(alias, exp.TableAlias) or alias.args.get("columns"):
            raise _refuse("this alias")
        return f" AS {self._identifier(alias.this)}"

    def _join(self, node: exp.Join) -> str:
        words = []
        for key in ("method", "side", "kind"):
            word = node.args.get(key)
            if word and word not in _JOIN_WORDS[key]:
                raise _refuse("this join")
            words += [word] if word else []
        on = node.args.get("on")
        using = node.args.get("using")
        if not words and on is None and not using:
            return f", {self.sql(node.this)}"
        text = " " + " ".join([*words, "JOIN", self.sql(node.this)])
        if using:
            return f"{text} USING ({', '.join([self._identifier(i) for i in using])})"
        return text if on is None else f"{text} ON {self.sql(on)}"

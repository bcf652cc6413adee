"""The sqlglot dialect "penstock": how text is cut into tokens, and how trees are written back.

Parsing is our own (`parsers/`): one small grammar with errors that point at a token. sqlglot gives
the tokenizer, the tree (`sqlglot.exp`) and the generator; `sqlglot.parse_one(text,
dialect="penstock")` works for queries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import sqlglot.parser
from sqlglot import exp, generator, tokens
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql import nodes
from penstock.sql.parsers.query import QueryParser
from penstock.sql.source import Source
from penstock.sql.words import quote_name, quote_string


class Penstock(Dialect):
    """Backticks quote names; single and double quotes are strings, with backslash escapes."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_INSENSITIVE
    UNESCAPED_SEQUENCES = {
        "\\n": "\n",
        "\\r": "\r",
        "\\t": "\t",
        "\\0": "\0",
        "\\'": "'",
        '\\"': '"',
    }

    class Tokenizer(tokens.Tokenizer):
        """Words are all VAR: the grammar decides what is a keyword, so no name is lost to a keyword
        of another dialect.
        """

        QUOTES = ["'", '"']
        IDENTIFIERS = ["`"]
        STRING_ESCAPES = ["'", '"', "\\"]
        COMMENTS = ["--", ("/*", "*/")]
        NESTED_COMMENTS = False
        KEYWORDS = {
            ">=": TokenType.GTE,
            "<=": TokenType.LTE,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            "->": TokenType.ARROW,
        }
        COMMANDS: ClassVar[set[TokenType]] = set()
        COMMAND_PREFIX_TOKENS: ClassVar[set[TokenType]] = set()

    class Parser(sqlglot.parser.Parser):
        """Entry for sqlglot's own functions; the grammar is `parsers.query.QueryParser`."""

        def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
            """Parse one query."""
            parser = QueryParser(raw_tokens, Source(sql or ""))
            query = parser.query()
            parser.expect_end()
            return [query]

    class Generator(generator.Generator):
        """Canonical text: one line, keywords upper case, functions lower case, names as they were
        spelled.
        """

        NORMALIZE_FUNCTIONS = "lower"
        QUERY_HINTS = False

        TRANSFORMS = {
            **generator.Generator.TRANSFORMS,
            exp.Identifier: lambda self, e: quote_name(e.name),
            exp.Literal: lambda self, e: quote_string(e.name) if e.is_string else e.name,
            exp.Anonymous: lambda self, e: (
                f"{_function_name(e)}({', '.join(self.sql(a) for a in e.expressions)})"
            ),
            exp.JSONExtract: lambda self, e: (
                f"{self.sql(e, 'this')} -> {self.sql(e, 'expression')}"
            ),
            exp.Join: lambda self, e: _join(self, e),
            exp.Trim: lambda self, e: _trim(self, e),
            exp.Exists: lambda self, e: f"EXISTS({self.sql(e, 'this')})",
            exp.Ordered: lambda self, e: _order_item(self, e),
            exp.Mod: lambda self, e: self.binary(e, "%"),
            exp.Div: lambda self, e: self.binary(e, "/"),
            exp.Select: lambda self, e: _select(self, e),
            nodes.DurationLiteral: lambda self, e: e.name,
            nodes.TypeName: lambda self, e: e.name,
            nodes.BinaryLiteral: lambda self, e: (
                "CAST(" + quote_string(f"\\x{e.name}") + " AS VARBINARY)"
            ),
            nodes.MatchRegex: lambda self, e: self.binary(e, "MATCH"),
            nodes.ContainsKey: lambda self, e: self.binary(e, "CONTAINS"),
            nodes.IntervalWindow: lambda self, e: (
                _call(self, "INTERVAL", e, "size", "offset")
                + _suffix(self, " SLIDING", e, "sliding")
            ),
            nodes.SessionWindow: lambda self, e: _call(self, "SESSION", e, "ts", "tol"),
            nodes.StateWindow: lambda self, e: (
                _call(self, "STATE_WINDOW", e, "expr") + _suffix(self, " TRUE_FOR", e, "true_for")
            ),
            nodes.EventWindow: lambda self, e: (
                f"EVENT_WINDOW START WITH {self.sql(e, 'start')} END WITH {self.sql(e, 'end')}"
                + _suffix(self, " TRUE_FOR", e, "true_for")
            ),
            nodes.CountWindow: lambda self, e: _call(self, "COUNT_WINDOW", e, "size", "sliding"),
            nodes.Fill: lambda self, e: _fill(self, e),
            nodes.Range: lambda self, e: (
                _call(self, "RANGE", e, "start", "end", "around")
                + _suffix(self, " EVERY", e, "step")
            ),
            nodes.PartitionBy: lambda self, e: (
                "PARTITION BY " + ", ".join(self.sql(x) for x in e.expressions)
            ),
        }


def _function_name(node: exp.Anonymous) -> str:
    name = str(node.name).lower()
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else quote_name(name)


def _fill(generator: Any, e: str) -> str:
    values = [generator.sql(value) for value in e.args.get("values") or []]  # type: ignore[attr-defined]
    return f"FILL({', '.join([e.args['mode'], *values])})"  # type: ignore[attr-defined]


def _call(self: Any, name: str, node: exp.Expr, *keys: str) -> str:
    return f"{name}({', '.join(self.sql(node, k) for k in keys if node.args.get(k) is not None)})"


def _suffix(self: Any, word: str, node: exp.Expr, key: str) -> str:
    return f"{word}({self.sql(node, key)})" if node.args.get(key) is not None else ""


def _trim(self: Any, node: exp.Trim) -> str:
    side = node.args.get("position")
    what = self.sql(node, "expression")
    return "trim(" + " ".join(x for x in (side, what, "FROM", self.sql(node, "this")) if x) + ")"


def _order_item(self: Any, node: exp.Ordered) -> str:
    nulls = {True: " NULLS FIRST", False: " NULLS LAST", None: ""}[node.args.get("nulls_first")]
    return f"{self.sql(node, 'this')}{' DESC' if node.args.get('desc') else ''}{nulls}"


def _select(self: Any, node: exp.Select) -> str:
    """Write SELECT in the order of the grammar; the clauses of other dialects never get into a tree
    of ours.
    """
    parts = [
        "SELECT",
        "DISTINCT" if node.args.get("distinct") else "",
        "TAGS" if node.args.get("tags") else "",
        ", ".join(self.sql(e) for e in node.expressions),
        _from(self, node),
        "OPEN WINDOWS" if node.args.get("open_windows") else "",
        *_clauses(self, node),
    ]
    return " ".join(part for part in parts if part)


def _from(self: Any, node: exp.Select) -> str:
    if not node.args.get("from_"):
        return ""
    joins = "".join(self.sql(j) for j in node.args.get("joins") or [])
    text: str = self.sql(node, "from_").strip() + joins
    return text


def _clauses(self: Any, node: exp.Select) -> Iterator[str]:
    """Yield what stands behind FROM; "" for a clause that is not there."""
    for key in ("where", *nodes.SELECT_CLAUSES, "group", "having", "qualify", "order"):
        yield self.sql(node, key).strip()
    for key in ("slimit", "soffset"):
        if node.args.get(key):
            yield f"{key.upper()} {self.sql(node, key)}"
    for key in ("limit", "offset"):
        yield self.sql(node, key).strip()


def _join(self: Any, node: exp.Join) -> str:
    """With its blank or comma in front."""
    if not any(node.args.get(k) for k in ("kind", "side", "method", "on", "using")):
        return ", " + self.sql(node, "this")  # type: ignore[no-any-return]
    words = [node.args[k] for k in ("side", "kind", "method") if node.args.get(k)]
    text = " " + " ".join([*words, "JOIN", self.sql(node, "this")])
    if node.args.get("using"):
        text = f"{text} USING ({', '.join(self.sql(i) for i in node.args['using'])})"
    elif node.args.get("on"):
        text = f"{text} ON {self.sql(node, 'on')}"
    offset = node.args.get("window_offset")
    if offset is not None:
        text = f"{text} {_call(self, 'WINDOW_OFFSET', offset, 'begin', 'end')}"
    limit = node.args.get("join_limit")
    return text if limit is None else f"{text} JLIMIT {limit.name}"


def tokenize(text: str) -> list[Token]:
    """Tokens of *text*; raises sqlglot's TokenError."""
    return Penstock().tokenize(text)


def to_sql(node: exp.Expr) -> str:
    """Canonical text of an expression or a query."""
    return node.sql(dialect=Penstock, copy=False, comments=False)

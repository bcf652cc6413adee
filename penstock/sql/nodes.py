"""Expression nodes that sqlglot does not have: durations, type names, window clauses, FILL and
PARTITION BY.

They hang in a `exp.Select` under the keys `partition_by`, `window`, `range`, `fill`,
`open_windows`, `tags`, `slimit` and `soffset` (`Select.args`), and the penstock generator writes
them back.
"""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.sql.plan import Duration

#: Letters of the units of time; see `penstock.sql.plan.Duration`.
UNITS = tuple("buasmhdwny")

#: key of a note in `meta` of a subquery: it knows no names of the SELECT around it
STANDS_ALONE = "stands_alone"

_BYTES = re.compile(r"\\x((?:[0-9a-fA-F]{2})*)")

#: Keys of our clauses in `Select.args`, in the order they are written between WHERE and GROUP BY.
SELECT_CLAUSES = ("partition_by", "window", "range", "fill")


class DurationLiteral(exp.Expression, exp.Condition):
    """`10s`: `this` is the text, lower case."""

    arg_types = {"this": True}

    @property
    def duration(self) -> Duration:
        """The value as the plan has it."""
        text: str = self.args["this"]
        return Duration(int(text[:-1]), text[-1])  # type: ignore[arg-type]


class Placeholder(exp.Expression, exp.Condition):
    """`?` or `:name`: `penstock.sql.parameters` puts a literal here; `this` is the name or ""."""

    arg_types = {"this": True}


class BinaryLiteral(exp.Expression, exp.Condition):
    r"""Bytes: a parameter, or `CAST('\x00ff' AS VARBINARY)`; `this` is their hexadecimal digits."""

    arg_types = {"this": True}

    @classmethod
    def from_cast(cls, node: exp.Cast) -> BinaryLiteral | None:
        r"""Return the bytes that are written as `CAST('\x…' AS VARBINARY)`; None: they are not."""
        text = node.this
        if node.args["to"].name != "VARBINARY" or not isinstance(text, exp.Literal):
            return None
        digits = _BYTES.fullmatch(text.name) if text.is_string else None
        return None if digits is None else cls(this=digits[1].lower())


#: the function that takes columns of the row that another one chooses
COLS = "cols"


class TypeName(exp.Expression):
    """The type of a CAST, as canonical text: `VARCHAR(10)`, `BIGINT UNSIGNED`."""

    arg_types = {"this": True}


class MatchRegex(exp.Expression, exp.Binary, exp.Predicate):
    """Operator `MATCH`: a regular expression is found in the text. NMATCH is `Not(MatchRegex)`."""


class ContainsKey(exp.Expression, exp.Binary, exp.Predicate):
    """`tag CONTAINS 'key'`: a JSON tag has the key."""


class WindowClause(exp.Expression):
    """Base of the five window clauses."""


class IntervalWindow(WindowClause):
    """`INTERVAL(size[, offset]) [SLIDING(sliding)]`; offset may be `exp.Var('AUTO')`."""

    arg_types = {"size": True, "offset": False, "sliding": False}


class SessionWindow(WindowClause):
    """`SESSION(ts, tol)`."""

    arg_types = {"ts": True, "tol": True}


class StateWindow(WindowClause):
    """`STATE_WINDOW(expr) [TRUE_FOR(d)]`."""

    arg_types = {"expr": True, "true_for": False}


class EventWindow(WindowClause):
    """`EVENT_WINDOW START WITH start END WITH end [TRUE_FOR(d)]`."""

    arg_types = {"start": True, "end": True, "true_for": False}


class CountWindow(WindowClause):
    """`COUNT_WINDOW(size[, sliding])`; both are `exp.Literal` numbers."""

    arg_types = {"size": True, "sliding": False}


class WindowOffset(exp.Expression):
    """`WINDOW_OFFSET(begin, end)` of a WINDOW JOIN, which has it under the key `window_offset`.
    Both ends are a `DurationLiteral` or the `exp.Neg` of one.
    """

    arg_types = {"begin": True, "end": True}


class Fill(exp.Expression):
    """`FILL(mode[, values…])`; `mode` is upper case text (NONE, NULL, NULL_F, VALUE, VALUE_F, PREV,
    NEXT, LINEAR; NEAR behind RANGE).
    """

    arg_types = {"mode": True, "values": False}


class Range(exp.Expression):
    """`RANGE(start[, end][, around]) [EVERY(step)]`: the points in time that interp() reads;
    `around` and `step` are durations.
    """

    arg_types = {"start": True, "end": False, "around": False, "step": False}


class PartitionBy(exp.Expression):
    """`PARTITION BY item, …`; an item with a name of its own is an `exp.Alias`."""

    arg_types = {"expressions": True}

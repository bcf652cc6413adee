"""Random expressions of a wanted kind over the columns that are in scope."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.fuzz_select import operations
from tests.fuzz_select.kinds import NUMBERS, SMALL, TEXT, TIME_TEXT, WHOLE, standing_for
from tests.fuzz_select.tree import Apply, Column, Expression, Operation, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS = ("", " ", "a", "b", "ab", "xxabxx", "50%", "a_b", "a\\b", "it's", "ÄÖß", "😀x😀", "日本語")
_TIMES = ("2024-01-31", "2024-03-10 12:30:00", "2024-01-31 12:34:56Z", "no time")
_PATTERN = ("%", "_", "a", "b", "x", "\\%", "\\_", "5", "ß")
_DOUBLES = (0.0, 0.5, -0.5, 1.5, 2.0, -3.25, 100.0, 1e10, 0.1)
#: kinds that a constant can have
_WRITTEN = ("INT", SMALL, "BIGINT", "DOUBLE", "BOOL", *TEXT)
#: families whose values can be compared with each other
_COMPARABLE = (NUMBERS, TEXT, ("TIMESTAMP",), ("BOOL",))
#: whole numbers whose bits are combined. A query gives NULL today where those of a BIGINT UNSIGNED
#: are no BIGINT; a stream takes them as they are.
_WITH_BITS = ("INT", SMALL, "BIGINT", "TINYINT", "BIGINT")

#: kinds that a condition can be about which reads less
_NARROWING = ("TIMESTAMP", "INT", SMALL, "BIGINT", "DOUBLE", "VARCHAR")


def text_of(value: str) -> str:
    """Return a text as a statement has it."""
    escaped = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
    return "'" + escaped.replace("\t", "\\t") + "'"


def null(kind: str) -> Value:
    return Value(kind, None, "NULL")


#: how a number with another sign is written
_NEGATIVES = ("(-{0})", "(- {0})")


class ExpressionDrawer:
    """Draws expressions; `columns` are in scope."""

    def __init__(
        self, dice: random.Random, columns: Sequence[Column], zone: str, base: int
    ) -> None:
        self.dice = dice
        self.columns = columns
        self.zone = zone
        #: a time near those of the rows, in milliseconds
        self.base = base
        self._kinds = {c.kind for c in columns} | set(_WRITTEN)

    def has(self, kind: str) -> bool:
        """Tell if there are values of a kind without any operation."""
        return not self._kinds.isdisjoint(standing_for(kind))

    def some_kind(self) -> str:
        """Return a kind that an item may have."""
        kinds = [k for k in (*WHOLE, "DOUBLE", "FLOAT", "BOOL", *TEXT, "TIMESTAMP") if self.has(k)]
        return self.dice.choice(kinds)

    def column(self, *kinds: str) -> Column | None:
        """Return one of the columns of these kinds; of all without any."""
        among = [c for c in self.columns if not kinds or c.kind in kinds]
        return self.dice.choice(among) if among else None

    def draw(self, kind: str, depth: int, *, rough: bool = False) -> Expression:
        """Return an expression of *kind*.

        Args:
            rough: whether its last digits may depend on who computes it.
        """
        if depth <= 0 or self.dice.random() < 0.25:
            return self._leaf(kind)
        if kind == "BOOL" and self.dice.random() < 0.7:
            return self.condition(depth)
        if kind == "DOUBLE" and self.dice.random() < 0.5:
            return self._arithmetic(depth)
        operation = self._operation(kind, rough)
        if operation is None:
            return self._leaf(kind)
        operands = tuple(self.draw(k, depth - 1) for k in operation.kinds)
        if operation.text in _NEGATIVES and isinstance(operands[0], Value):
            # with a sign it is another constant, of its own type
            return operands[0]
        return Apply(operation, operands)

    def condition(self, depth: int) -> Expression:
        """Return what is true or false; mostly a comparison."""
        made = self.dice.choice(
            (
                self._comparison,
                self._comparison,
                self._between,
                self._in_list,
                self._is_null,
                self._like,
                self._logic,
            )
        )
        return made(depth)

    def plain_condition(self) -> Expression:
        """Return comparisons of columns with constants, without parentheses: a store reads less
        for them.
        """
        given = [self._plain_comparison() for _ in range(self.dice.choice((1, 1, 2)))]
        return (
            given[0] if len(given) == 1 else Apply(operations.bare(operations.LOGIC[0]), (*given,))
        )

    def _plain_comparison(self) -> Expression:
        columns = [c for c in self.columns if c.kind in _NARROWING]
        # mostly a range of times
        times = [c for c in columns if c.kind == "TIMESTAMP"]
        column = self.dice.choice(times if times and self.dice.random() < 0.6 else columns)
        values = [self._constant(column.kind) for _ in "ab"]
        if self.dice.random() < 0.2:
            kinds = (column.kind, values[0].kind, values[1].kind)
            operation = operations.between(*kinds, negated=False)
            return Apply(operations.bare(operation), (column, *values))
        symbol = self.dice.choice(("=", "<", "<=", ">", ">="))
        operation = operations.comparison(symbol, column.kind, values[0].kind)
        return Apply(operations.bare(operation), (column, values[0]))

    # ---------------------------------------------------------------- operations

    def _operation(self, kind: str, rough: bool) -> Operation | None:
        known = [
            operation
            for operation in operations.BY_RESULT.get(kind, [])
            if (rough or not operation.rough) and all(map(self.has, operation.kinds))
        ]
        roll = self.dice.random()
        if roll < 0.15 and self.has(kind):
            return operations.case(kind, otherwise=self.dice.random() < 0.7)
        if roll < 0.2 and self.has(kind):
            return operations.simple_case(self.dice.choice((SMALL, "VARCHAR", "DOUBLE")), kind)
        if roll < 0.3 and kind == "BIGINT":
            left, right = (self.dice.choice([k for k in _WITH_BITS if self.has(k)]) for _ in "ab")
            return operations.bits(self.dice.choice("&|"), left, right)
        return self.dice.choice(known) if known else None

    def _arithmetic(self, depth: int) -> Expression:
        """Return arithmetic of numbers, of which the first is no constant."""
        symbol = self.dice.choice("+-*/%")
        numbers = [k for k in NUMBERS if self.has(k)]
        # of two whole numbers, % is a whole number today
        left = "DOUBLE" if symbol == "%" else self.dice.choice(numbers)
        right = self.dice.choice(numbers)
        first = self.draw(left, depth - 1)
        if isinstance(first, Value):
            first = self.column(*standing_for(left)) or self.column(*NUMBERS) or first
        if isinstance(first, Value) or (symbol == "%" and first.kind != "DOUBLE"):
            return self._leaf("DOUBLE")
        operation = operations.arithmetic(symbol, first.kind, right)
        return Apply(operation, (first, self.draw(right, depth - 1)))

    def _pair(self, depth: int, count: int) -> tuple[Expression, ...]:
        """Return values that can be compared; the first is no constant where there are columns."""
        family = self.dice.choice(_COMPARABLE)
        kinds = [k for k in family if self.has(k)]
        if not kinds:
            return self._pair(depth, count)
        first = self.draw(self.dice.choice(kinds), depth - 1)
        if isinstance(first, Value):
            first = self.column(*kinds) or first
        rest = [self._beside(first, kinds, depth) for _ in range(count - 1)]
        return (first, *rest)

    def _beside(self, first: Expression, kinds: list[str], depth: int) -> Expression:
        """Return what *first* is compared with: often something that it may be equal to."""
        if first.kind == "TIMESTAMP" and self.dice.random() < 0.6:
            return self.time()
        roll = self.dice.random()
        if roll < 0.4 and first.kind not in ("TIMESTAMP", "TINYINT", "BIGINT UNSIGNED", "FLOAT"):
            return self._constant(first.kind)
        if roll < 0.45:
            return null(first.kind)
        return self.draw(self.dice.choice(kinds), depth - 1)

    def _comparison(self, depth: int) -> Expression:
        left, right = self._pair(depth, 2)
        symbol = self.dice.choice(operations.SYMBOLS)
        return Apply(operations.comparison(symbol, left.kind, right.kind), (left, right))

    def _between(self, depth: int) -> Expression:
        given = self._pair(depth, 3)
        kinds = (given[0].kind, given[1].kind, given[2].kind)
        return Apply(operations.between(*kinds, negated=self._rarely()), given)

    def _in_list(self, depth: int) -> Expression:
        given = self._pair(depth, self.dice.choice((2, 3, 4, 12)))
        kinds = tuple(e.kind for e in given)
        return Apply(operations.in_list(kinds, negated=self._rarely()), given)

    def _is_null(self, depth: int) -> Expression:
        of = self.draw(self.some_kind(), depth - 1)
        return Apply(operations.is_null(of.kind, negated=self.dice.random() < 0.5), (of,))

    def _like(self, depth: int) -> Expression:
        pattern = "".join(self.dice.choices(_PATTERN, k=self.dice.randrange(5)))
        operation = operations.like_pattern(pattern, negated=self._rarely())
        return Apply(operation, (self.draw("VARCHAR", depth - 1),))

    def _logic(self, depth: int) -> Expression:
        operation = self.dice.choice(operations.LOGIC)
        return Apply(operation, tuple(self.draw("BOOL", depth - 1) for _ in operation.kinds))

    def _rarely(self) -> bool:
        return self.dice.random() < 0.3

    # ---------------------------------------------------------------- leaves

    def _leaf(self, kind: str) -> Expression:
        column = self.column(*standing_for(kind))
        if column is None or (kind in _WRITTEN and self.dice.random() < 0.25):
            return self._constant(kind)
        return column

    def _constant(self, kind: str) -> Expression:
        """Return a constant of *kind*, which is one that can be written."""
        dice = self.dice
        if kind == "BOOL":
            yes = dice.random() < 0.5
            return Value(kind, yes, "TRUE" if yes else "FALSE")
        if kind == "TIMESTAMP":
            return self.time()
        if kind in TEXT:
            text = dice.choice(_TIMES if kind == TIME_TEXT else _WORDS)
            return Value(kind, text, text_of(text))
        if kind in ("DOUBLE", "FLOAT"):
            number = dice.choice((*_DOUBLES, dice.randrange(-40, 40) / 4))
            return Value("DOUBLE", number, f"{number:f}")
        whole = {
            SMALL: dice.randrange(-4, 9),
            "BIGINT": dice.choice((2**31, 2**62, 2**63 - 1, dice.randrange(2**32, 2**50))),
        }.get(kind, dice.choice((0, 1, 7, -1, 100, 2**31 - 1, dice.randrange(-2000, 2000))))
        return Value(kind, whole, str(whole))

    def time(self) -> Value:
        """Return a time as a text or as ticks, which both stand beside a time only."""
        ticks = self.base + self.dice.randrange(-10, 50) * self.dice.choice((1000, 60_000, 250))
        if self.dice.random() < 0.3:
            return Value("TIMESTAMP", ticks, str(ticks))
        local = (_EPOCH + timedelta(milliseconds=ticks)).astimezone(ZoneInfo(self.zone))
        # a local time that clocks show twice is the first one
        written = local.isoformat() if local.fold or self._rarely() else _bare(local)
        return Value("TIMESTAMP", ticks, f"'{written}'")


def _bare(local: datetime) -> str:
    return local.replace(tzinfo=None).isoformat(" ")

"""Random window clauses."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz_select import operations
from tests.fuzz_select.drawing import Drawing
from tests.fuzz_select.kinds import SMALL
from tests.fuzz_select.tree import Apply, Expression, Value, Window

#: columns that change within a table
_STATES = ("o", "n", "i", "s")


def window(at: Drawing, step: int, *, of_one_table: bool) -> Window:
    """Return a window clause.

    Args:
        step: mostly the time between two rows, in milliseconds.
        of_one_table: the rows have an order in which states and events are found.
    """
    makers: list[Callable[[Drawing, int], Window]] = [_interval, _interval, _session]
    if of_one_table:
        makers += [_state, _event, _count]
    return at.dice.choice(makers)(at, step)


def _interval(at: Drawing, step: int) -> Window:
    dice = at.dice
    roll = dice.random()
    if roll < 0.15:
        return Window("INTERVAL", days=dice.choice((1, 1, 7)))
    size = step * dice.choice((1, 2, 5, 10))
    if roll < 0.4:
        return Window("INTERVAL", size, sliding=size // dice.choice((2, 5)))
    if roll < 0.6:
        return Window("INTERVAL", size, offset=size // dice.choice((2, 4)))
    return Window("INTERVAL", size)


def _session(at: Drawing, step: int) -> Window:
    return Window("SESSION", step * at.dice.choice((1, 2, 4)))


def _state(at: Drawing, step: int) -> Window:
    return Window("STATE_WINDOW", of=(_state_of(at),), true_for=_held(at, step))


def _state_of(at: Drawing) -> Expression:
    columns = [c for c in at.expressions.columns if c.name in _STATES]
    if at.dice.random() < 0.7:
        return at.dice.choice(columns)
    one, two = (Value(SMALL, number, str(number)) for number in (1, 2))
    return Apply(operations.if_of(SMALL), (at.expressions.condition(1), one, two))


def _event(at: Drawing, step: int) -> Window:
    start, end = (at.expressions.condition(1) for _ in range(2))
    return Window("EVENT_WINDOW", of=(start, end), true_for=_held(at, step))


def _held(at: Drawing, step: int) -> int:
    return step * 2 if at.dice.random() < 0.2 else 0


def _count(at: Drawing, _: int) -> Window:
    size = at.dice.choice((2, 3, 5))
    return Window("COUNT_WINDOW", numbers=(size, at.dice.randint(1, size)))

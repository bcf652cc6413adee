"""One case: a query over the tables of a world, and everybody's answer to it."""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from penstock.errors import PenstockError
from tests.fuzz_select import printing
from tests.fuzz_select.answer import Answer, Answerer
from tests.fuzz_select.compare import rows_of, same_value, wrong_rows, wrong_types
from tests.fuzz_select.draw_selects import SelectDrawer
from tests.fuzz_select.engines import RandomStore, values_in_stream
from tests.fuzz_select.evaluate import Place, evaluate
from tests.fuzz_select.mistakes import spoil
from tests.fuzz_select.tables import World, draw_world
from tests.fuzz_select.tree import (
    Exists,
    Expression,
    InQuery,
    Query,
    Select,
    TableSource,
    aggregated,
    walk,
)
from tests.sql.rows import ZONES

#: cases that share the rows of one world
BATCH = 25
#: part of the cases that have a mistake in them
MISTAKEN = 0.04


@dataclass(frozen=True)
class Trial:
    """A query, the zone in which it is asked, and the rows."""

    name: str
    query: Query
    zone: str
    world: World
    #: code of the error that must come, because there is a mistake in the query
    refused: str = ""

    @property
    def sql(self) -> str:
        return printing.query(self.query)

    @cached_property
    def wanted(self) -> Answer:
        """The answer in plain Python."""
        return Answerer(self.world, self.zone).answer(self.query)


@dataclass(frozen=True)
class Fault:
    """What is wrong: with whose answer, and how."""

    engine: str
    words: str


def draw_trial(seed: str, number: int) -> Trial:
    """Return case *number* of a run."""
    world = draw_world(random.Random(f"{seed}/world {number // BATCH}"))
    dice = random.Random(f"{seed}/{number}")
    zone = dice.choice(ZONES)
    drawer = SelectDrawer(dice, world, zone)
    name = f"{seed}/{number}"
    if dice.random() < MISTAKEN:
        query, code = spoil(dice, drawer.draw_from_table())
        return Trial(name, query, zone, world, code)
    return Trial(name, drawer.draw(), zone, world)


def judge(trial: Trial, store: RandomStore | None = None) -> Fault | None:
    """Return what is wrong with an answer to *trial*; None where all are right."""
    if store is not None:
        return _judge(trial, store)
    with tempfile.TemporaryDirectory() as directory:
        return _judge(trial, RandomStore(trial.world, Path(directory)))


def _judge(trial: Trial, store: RandomStore) -> Fault | None:
    try:
        if trial.refused:
            store.ask(trial.sql, trial.zone)
            return Fault("answered", f"it is not refused with {trial.refused}")
        return _judge_store(trial, store) or _judge_streams(trial)
    except PenstockError as error:
        if error.code == trial.refused:
            return None
        return Fault(f"error {error.code}", str(error))


def _judge_store(trial: Trial, store: RandomStore) -> Fault | None:
    table = store.ask(trial.sql, trial.zone)
    wrong = wrong_types(table, trial.query) or wrong_rows(rows_of(table), trial.wanted, trial.query)
    if wrong:
        return Fault("query", wrong)
    if not isinstance(trial.query, Select) or trial.query.window is None:
        return None
    by_kernels = store.ask_kernels(trial.sql, trial.zone)
    if by_kernels is None:
        return None
    wrong = wrong_rows(rows_of(by_kernels), trial.wanted, trial.query)
    return Fault("kernels", wrong) if wrong else None


def _judge_streams(trial: Trial) -> Fault | None:
    """Compare the items of a SELECT from one table with the same expressions in a stream."""
    query = trial.query
    if not isinstance(query, Select) or not isinstance(query.source, TableSource) or query.window:
        return None
    rows = trial.world.rows(query.source.table)
    if not rows:
        return None
    answerer = Answerer(trial.world, trial.zone)
    types = next(t for t in trial.world.tables if query.source.table in (t.name, *t.children))
    for item in filter(_is_of_one_row, query.items):
        keyed = [{f"{query.source.alias}.{k}": v for k, v in row.items()} for row in rows]
        wanted = [evaluate(item, Place(row, trial.zone, answerer.answer)) for row in keyed]
        found = values_in_stream(item, rows, types.columns | types.tags, trial.zone)
        for row, a, b in zip(rows, found, wanted, strict=True):
            if not same_value(a, b):
                text = printing.expression(item, qualified=False)
                return Fault("stream", f"{text} is {a!r}, not {b!r}, of {row}")
    return None


def _is_of_one_row(item: Expression) -> bool:
    return not aggregated(item) and not any(isinstance(e, InQuery | Exists) for e in walk(item))

"""Cases on the windows package alone: real parser, planner and kernel, the source table and the
clock in memory.

With a seed the writes between two other events are cut into calls at random, history is filled in
stretches of time, and the kernel is now and then saved and restored from what it saved: nothing of
that may change a result.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import polars as pl

from penstock.errors import PenstockError
from penstock.rows.versions import CLEAR, DELETE, MERGE, UPSERT, filler
from penstock.sql import parse_one
from penstock.sql.plan import TICKS_PER_SECOND, StreamPlan
from penstock.sql.planner import plan_stream
from penstock.sql.statements import CreateStream
from penstock.windows import Control, Delta, Emission, Kernel, make_kernel
from penstock.windows.kernel import EARLIEST, LATEST, ROOM, History
from tests.conformance.case import Case, Outcome, Row, tags_of
from tests.conformance.memory import MemoryHistory
from tests.conformance.schema import Schema

_CONTROLS = {"PAUSE": "pause", "RESUME": "resume"}


class KernelBackend:
    """Runs each case on a kernel of its own."""

    def __init__(
        self,
        split: int | None = None,
        stretches: int | None = None,
        room: int | None = None,
        make: Callable[[StreamPlan, History | None, int], Kernel] = make_kernel,
    ) -> None:
        """
        Args:
            split: the seed.
            stretches: the seed of a run in which history comes in stretches and all else as it is
                written.
            room: so many live rows the kernel keeps in any case.
            make: what makes the kernel.
        """
        self._split = split
        self._stretches = stretches
        self._room = room
        self._make = make

    def run(self, case: Case) -> Outcome:
        """See `Backend`."""
        outcome = Outcome(case.id)
        try:
            schema = Schema()
            for text in case.tables:
                schema.execute(text)
            statement = parse_one(case.stream)
            assert isinstance(statement, CreateStream)
            plan = plan_stream(
                statement,
                schema,
                database=schema.database,
                stream_id=1,
                target_id=1000,
                timezone=case.timezone,
            ).plan
        except PenstockError as error:
            outcome.error = error.code
            return outcome
        chance = random.Random(f"{self._split}/{case.id}") if self._split is not None else None
        try:
            run = _Run(case, plan, schema, chance)
            run.room = self._room
            run.make = self._make
            run.cutting = random.Random(self._stretches) if self._stretches is not None else chance
            run.play(outcome)
        except Exception as error:
            outcome.crash = f"{type(error).__name__}: {error}"
            if chance is None and __debug__:
                import traceback

                outcome.crash += "\n" + traceback.format_exc()
        return outcome

    def close(self) -> None:
        """Nothing to stop."""


def forget_early(kernel: Kernel) -> None:
    """Make *kernel* let go of old rows at once, so that corrections read them again."""
    inner = getattr(kernel, "inner", kernel)
    if (evictor := getattr(inner, "evictor", None)) is not None:
        evictor.bound.room = 0


class _Run:
    """One case being played."""

    def __init__(
        self, case: Case, plan: StreamPlan, schema: Schema, chance: random.Random | None
    ) -> None:
        self.case = case
        self.plan = plan
        self.schema = schema
        self.chance = chance
        #: what history is cut by
        self.cutting: random.Random | None = None
        self.room: int | None = None
        self.make: Callable[[StreamPlan, History | None, int], Kernel] = make_kernel
        self.kernel: Kernel | None = None
        self.saved: list[Delta] = []
        self.forgets = chance is not None and chance.random() < 0.5
        self.clock = case.clock_start
        self.offset = 0
        self.pending: list[list[tuple[str, Row]]] = []
        self.target: dict[tuple[Any, ...], Row] = {}
        self.children: dict[str, None] = {}
        self.events: list[Row] = []
        columns = [*plan.source.columns, *plan.source.tags]
        self.columns: dict[str, Any] = {c.name: c.type.polars() for c in columns}
        self.frame: dict[str, Any] = {
            "_step": pl.UInt32(),
            "_offset": pl.Int64(),
            "_now": pl.Int64(),
            "_op": pl.Int8(),
            "tbname": pl.String(),
            **self.columns,
        }
        self.history = MemoryHistory(plan.source.time_column, plan.source.key_column, self.frame)

    def play(self, outcome: Outcome) -> None:
        """Run all events; the outcome is filled as it goes."""
        if not any(e[0] == "CREATE_STREAM" for e in self.case.events):
            self._create()
        for event in self.case.events:
            if event[0] == "BATCH":
                self._write([(t, r) for t, r in event[1]])
            elif isinstance(event[0], str) and len(event) == 2 and isinstance(event[1], dict):
                self._write([(event[0], event[1])])
            else:
                self._flush()
                self._other(event, outcome)
        self._flush()
        outcome.rows = self._rows()
        outcome.tables = sorted(self.children)
        outcome.notify = self.events

    def _other(self, event: tuple[Any, ...], outcome: Outcome) -> None:
        kind = event[0]
        if kind == "CREATE_STREAM":
            self._create()
        elif kind == "SNAPSHOT":
            outcome.snapshots.append(self._rows())
        elif kind == "ADVANCE":
            self.clock += event[1]
            self._control(Control("tick", time=self._ticks()))
        elif kind == "DELETE":
            self._delete(*event[1:])
        elif kind == "RESUME" and len(event) > 1:
            self._control(Control("resume_skip"))
        elif kind in _CONTROLS:
            self._control(Control(_CONTROLS[kind]))
        else:
            raise ValueError(f"unknown event {kind}")

    def _ticks(self) -> int:
        return self.clock * TICKS_PER_SECOND[self.plan.source.precision] // 1000

    def _create(self) -> None:
        self._flush()
        self.kernel = self._fresh()
        self._control(Control("tick", time=self._ticks()))
        if self.plan.fill_history:
            for low, high in self._stretches():
                self._restart()
                self._take(self.kernel.load_history(low, high))

    def _stretches(self) -> list[tuple[int, int]]:
        """All time, in pieces; events of a window that is in two of them would be told twice."""
        if self.cutting is None or (self.plan.notify is not None and self.plan.notify.history):
            return [(EARLIEST, LATEST)]
        stored = self.history.fetch(EARLIEST, LATEST)
        times = stored.get_column(self.plan.source.time_column).to_list() if stored.height else []
        ends = sorted(set(self.cutting.sample(times, self.cutting.randint(0, min(len(times), 4)))))
        return list(zip([EARLIEST, *(e + 1 for e in ends)], [*ends, LATEST], strict=True))

    def _fresh(self) -> Kernel:
        kernel = self.make(self.plan, self.history, ROOM if self.room is None else self.room)
        if self.forgets and self.room is None:
            forget_early(kernel)
        return kernel

    def _control(self, control: Control) -> None:
        if self.kernel is not None:
            self._take(self.kernel.control(control))

    def _delete(self, table: str, low: int, high: int) -> None:
        definition = self.schema.table(self.schema.database, table)
        if definition is None or definition.name.lower() != self.plan.source.table.lower():
            return
        tables = (
            (definition.child or definition.name,)
            if definition.kind in ("child", "plain")
            else None
        )
        self._control(Control("delete", tables=tables, low=low, high=high))
        self.history.delete(tables, low, high)

    def _write(self, rows: list[tuple[str, Row]]) -> None:
        if self.chance is None or self.chance.random() < 0.5:
            self._flush()
        self.pending.append(rows)
        if self.chance is None:
            self._flush()

    def _flush(self) -> None:
        """Hand the writes that wait to the kernel in one call."""
        lines = [
            line
            for step, rows in enumerate(self.pending)
            for table, row in rows
            for line in self._lines(step, table, row)
        ]
        self.pending = []
        if not lines:
            return
        frame = pl.DataFrame(lines, schema=self.frame)
        if self.kernel is not None:
            self._restart()
            self._take(self.kernel.apply(frame))
        self.history.add(frame)

    def _restart(self) -> None:
        """Now and then go on with a kernel restored from what this one saved."""
        if self.chance is None or self.kernel is None or self.chance.random() < 0.5:
            return
        full = not self.saved or self.chance.random() < 0.3
        delta = self.kernel.delta(full)
        self.saved = [delta] if full else [*self.saved, delta]
        if self.chance.random() < 0.5:
            self.kernel = self._fresh()
            self.kernel.restore(self.saved)

    def _lines(self, step: int, table: str, row: Row) -> list[Row]:
        """The versions that a written row makes."""
        definition = self.schema.table(self.schema.database, table)
        if definition is None:
            raise ValueError(f"no table {table}")
        if definition.name.lower() != self.plan.source.table.lower():
            return []
        self.offset += 1
        spelled = {c.lower(): c for c in self.columns}
        time = definition.columns[0].name
        given = {spelled.get(k.lower(), time if k == "ts" else k): v for k, v in row.items()}
        whole = all(c.name in given for c in definition.columns)
        child = self.schema.children.get(table.lower())
        tags = child.tags if child is not None else {}
        head = {
            "_step": step,
            "_offset": self.offset,
            "_now": self._ticks(),
            "tbname": child.name if child is not None else definition.name,
            **tags,
        }
        keys = {time, self.plan.source.key_column}
        cleared = {
            n: filler(self.columns[n])
            for n, v in given.items()
            if v is None and n not in keys and n in self.columns and not whole
        }
        versions = [{**head, "_op": UPSERT if whole else MERGE, **given}]
        if cleared:
            when = {n: v for n, v in given.items() if n in keys}
            versions.insert(0, {**head, "_op": CLEAR, **when, **cleared})
        return versions

    def _take(self, emission: Emission) -> None:
        """Apply what the kernel published to the target table."""
        self.events += emission.events
        if emission.rows is None:
            return
        target = self.plan.target
        time = target.columns[0].name
        key = target.key_column
        for row in emission.rows.iter_rows(named=True):
            identity = (row["tbname"], row[time], row[key] if key else None)
            if row["_op"] == DELETE:
                self.target.pop(identity, None)
            else:
                self.target[identity] = row
                self.children[row["tbname"]] = None

    def _rows(self) -> list[Row]:
        """The target table by partition values, then first column."""
        target = self.plan.target
        columns = [c.name for c in target.columns]
        tags, shown = tags_of(target)
        keyed = {o.name for o in self.plan.outputs if o.sql.strip("`").startswith("_k")}
        parts = [
            c.name
            for c, origin in zip(target.columns, target.column_of, strict=True)
            if origin in keyed
        ] + tags

        def rank(row: Row) -> tuple[Any, ...]:
            order = [
                (row[p] is not None, str(type(row[p])), row[p] if row[p] is not None else 0)
                for p in parts
            ]
            return (order, row["tbname"] if not parts else "", row[columns[0]])

        return [
            {c: row[c] for c in (*columns, *shown)}
            for row in sorted(self.target.values(), key=rank)
        ]

"""`make fuzz [SEED=] [CASES=] [FUZZ_OUT=]`: random streams on the kernels against the slow
calculator.

Each case is one plan with one history of writes and deletes, run whole or cut into calls, saved and
restored at random (SPLIT), with room for so many rows in memory (ROOM). One that fails is shrunk
and written as a conformance case. A seed names a run for good.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.conformance.case import DEFAULT_CLOCK, Case
from tests.conformance.kernel_backend import KernelBackend
from tests.fuzz import draw
from tests.fuzz.calculator import Calculator, Plan

_CHUNK = 25


@dataclass
class Trial:
    """A case to try and how it is run."""

    id: str
    plan: Plan
    stream: str
    events: list[list[Any]]
    split: int | None
    room: int | None

    def expected(self) -> list[dict[str, Any]]:
        calculator = Calculator(self.plan)
        calculator.play(self.events, DEFAULT_CLOCK)
        return sorted(
            calculator.published(),
            key=lambda r: (str(r.get("k", "")), str(r.get("c", "")), r["ws"]),
        )

    def raw(self) -> dict[str, Any]:
        """The trial as a conformance case."""
        how = " ".join(
            [
                *([f"SPLIT={self.split}"] if self.split is not None else []),
                *([f"ROOM={self.room}"] if self.room else []),
            ]
        )
        about = f"random: {self.stream.split(' INTO ')[0]}{f' [{how}]' if how else ''}"
        # a case holds exact values, also where a sketch of many values may be beside them
        expect = [
            {name: value for name, value in row.items() if name != "_p"} for row in self.expected()
        ]
        return {
            "id": self.id,
            "about": about,
            "tables": list(draw.TABLES),
            "stream": self.stream,
            "events": self.events,
            "expect": expect,
        }

    def fault(self) -> str | None:
        """What is wrong with what the kernel gives; None: nothing."""
        outcome = KernelBackend(self.split, room=self.room).run(Case.read(self.raw()))
        if outcome.error is not None or outcome.crash is not None:
            return outcome.error or outcome.crash
        left: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for row in outcome.rows:
            left[_whose(row)].append(row)
        missing = []
        for row in self.expected():
            match = next((f for f in left[_whose(row)] if _agree(f, row)), None)
            if match is None:
                missing.append(row)
            else:
                left[_whose(row)].remove(match)
        over = [row for rows in left.values() for row in rows]
        words = [
            *(f"missing {json.dumps(r)}" for r in missing),
            *(f"too many {json.dumps(r)}" for r in over),
        ]
        return "; ".join(words) or None


def _whose(row: dict[str, Any]) -> Any:
    return row["ws"], row.get("k"), row.get("c")


def _agree(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether all is the same, but for what a sketch may be off: a distinct value in sixty, and of
    many values some ranks.
    """
    if {*found, "_p"} != {*wanted, "_p"}:
        return False
    for name, value in found.items():
        right = wanted[name]
        if value == right or name not in ("h", "p") or value is None or right is None:
            if value != right:
                return False
        elif name == "h":
            if abs(value - right) > max(1, right // 20):
                return False
        elif wanted["_p"] is None:
            if not math.isclose(value, right, rel_tol=1e-9, abs_tol=1e-9):
                return False
        elif not wanted["_p"][0] <= value <= wanted["_p"][1]:
            return False
    return True


def trial(seed: str, number: int) -> Trial:
    """Case *number* of a run."""
    chance = random.Random(f"{seed}/{number}")
    plan = draw.plan(chance)
    happened = draw.events(chance, plan)
    split = chance.randint(0, 999) if chance.random() < 0.6 else None
    room = chance.randint(1, 50) if chance.random() < 0.5 else None
    return Trial(
        f"fuzz_{seed}_{number}",
        plan,
        draw.statement(plan, plan.window[0] != "rows" and chance.random() < 0.3),
        happened,
        split,
        room,
    )


def shrink(failing: Trial) -> Trial:
    """The same fault with fewer events and rows."""
    again = True
    while again:
        again = False
        for smaller in _smaller(failing):
            if smaller.fault() is not None:
                failing = smaller
                again = True
                break
    return failing


def _smaller(big: Trial) -> list[Trial]:
    made = []

    def add(events: list[list[Any]]) -> None:
        made.append(Trial(big.id, big.plan, big.stream, events, big.split, big.room))

    for i, event in enumerate(big.events):
        rest = [*big.events[:i], *big.events[i + 1 :]]
        if event[0] != "CREATE_STREAM" and (event[0] != "ADVANCE" or big.plan.forced):
            add(rest)
        if event[0] == "BATCH" and len(event[1]) > 8:
            half = len(event[1]) // 2
            for part in (event[1][:half], event[1][half:]):
                add([*big.events[:i], ["BATCH", part], *big.events[i + 1 :]])
        elif event[0] == "BATCH" and len(event[1]) > 1:
            for j in range(len(event[1])):
                add(
                    [
                        *big.events[:i],
                        ["BATCH", [*event[1][:j], *event[1][j + 1 :]]],
                        *big.events[i + 1 :],
                    ]
                )
    if big.room is not None:
        made.append(Trial(big.id, big.plan, big.stream, big.events, big.split, None))
    if big.split is not None:
        made.append(Trial(big.id, big.plan, big.stream, big.events, None, big.room))
    return made


def _try(seed: str, numbers: range) -> list[tuple[dict[str, Any], str]]:
    failed = []
    for number in numbers:
        one = trial(seed, number)
        if one.fault() is not None:
            small = shrink(one)
            failed.append((small.raw(), small.fault() or ""))
    return failed


def main() -> int:
    """The command; 1 when a case failed."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument(
        "--seed", default=f"{datetime.now(UTC):%Y%m%d}", help="names the run; the date if not given"
    )
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument(
        "--out", type=Path, default=Path("fuzz-failures.json"), help="where shrunk failing cases go"
    )
    given = parser.parse_args()
    chunks = [range(i, min(i + _CHUNK, given.cases)) for i in range(0, given.cases, _CHUNK)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        failed = [f for made in pool.map(_try, [given.seed] * len(chunks), chunks) for f in made]
    for raw, fault in failed:
        print(f"FAILED {raw['id']}: {raw['about']}: {fault}")
    if failed:
        given.out.write_text(json.dumps([raw for raw, _ in failed], indent=1))
        print(
            f"cases written to {given.out}; play them with make conformance CASES={given.out} (SPLIT as said)"
        )
    print(f"seed {given.seed}: {given.cases - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

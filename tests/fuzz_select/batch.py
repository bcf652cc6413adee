"""Cases that share one store: tried, and those that fail made small."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.fuzz_select.engines import RandomStore
from tests.fuzz_select.report import corpus_text
from tests.fuzz_select.shrink import shrink
from tests.fuzz_select.trial import Fault, Trial, draw_trial, judge


def try_batch(seed: str, numbers: range) -> list[str]:
    """Return texts of the cases that fail. All of *numbers* have the rows of one world."""
    trials = [draw_trial(seed, number) for number in numbers]
    failed = []
    with tempfile.TemporaryDirectory() as directory:
        store = RandomStore(trials[0].world, Path(directory))
        for trial in trials:
            fault = judge(trial, store)
            if fault is not None:
                failed.append(corpus_text(*shrink(trial, fault, _judge_smaller)))
    return failed


def _judge_smaller(trial: Trial) -> Fault | None:
    """Judge a smaller case; one whose tree makes no sense has no fault."""
    try:
        return judge(trial)
    except (KeyError, IndexError, AssertionError, TypeError, ValueError):
        return None

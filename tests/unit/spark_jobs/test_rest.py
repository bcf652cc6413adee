"""What is at rest, who gives way, and the law: rest never changes a result."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from penstock import names
from penstock.records import ControlRecord
from spark_jobs.queries import Wanted
from spark_jobs.rest import TURN_SECONDS, Quiet, TopicProgress, TopicRest, Turn, giving_way, listen
from tests.unit.spark_jobs.processor_kit import Mesh

A = Wanted("in.a", 2, 100)
B = Wanted("in.b", 2, 101)
EXCHANGE = Wanted(names.EXCHANGE, 4, 0)
IDLE = 60.0
DONE = TopicProgress((5, 3), (5, 3))
LATER = TopicProgress((6, 3), (6, 3))
BEHIND = TopicProgress((6, 3), (5, 3))


# -------------------------------------------------------------------- one topic


@pytest.mark.parametrize(
    ("look", "done"),
    [
        (TopicProgress((), ()), True),
        (TopicProgress((0, 0), (0, 0)), True),
        (DONE, True),
        (TopicProgress((5, 3), (6, 3)), True),  # a position may be newer than the look at the end
        (BEHIND, False),
        (TopicProgress((5, 3), (9, 0)), False),
        (TopicProgress((5, 3), (5, 3), sure=False), False),
    ],
)
def test_done_is_what_is_saved_everywhere(look, done):
    assert look.done == done


def test_quiet_begins_with_the_last_record_that_was_saved():
    assert listen(None, BEHIND, 10.0) is None
    quiet = listen(None, DONE, 10.0)
    assert quiet == Quiet((5, 3), 10.0)
    assert listen(quiet, DONE, 20.0) == quiet
    assert listen(quiet, BEHIND, 30.0) is None
    assert listen(quiet, LATER, 40.0) == Quiet((6, 3), 40.0)  # it came and went between two looks


def _read(rest: TopicRest, *looks: tuple[float, TopicProgress], clocked: bool = False) -> bool:
    return [rest.look(A, look, now, clocked=clocked) for now, look in looks][-1]


def test_what_is_done_when_it_is_first_seen_rests_at_once():
    rest = TopicRest(IDLE)
    assert rest.new_topics({"in.a": A}) == [A]
    assert _read(rest, (0.0, DONE))
    assert rest.new_topics({"in.a": A}) == []
    assert rest.awake({"in.a": A, "in.b": B}) == {"in.b": B}


def test_what_was_awake_rests_after_a_while_of_quiet():
    rest = TopicRest(IDLE)
    assert not _read(rest, (0.0, BEHIND), (1.0, LATER), (60.0, LATER))
    assert _read(rest, (61.0, LATER))
    assert rest.wake("in.a", 70.0) == A
    assert rest.wake("in.a", 70.0) is None
    assert rest.is_waking("in.a", 99.0) and not rest.is_waking("in.a", 101.0)
    assert not _read(rest, (71.0, LATER), (130.0, LATER))  # the while begins anew
    assert _read(rest, (131.0, LATER))


def test_whom_the_clock_drives_never_rests():
    assert not _read(TopicRest(IDLE), (0.0, DONE), (1000.0, DONE), clocked=True)


def test_without_a_time_nothing_rests():
    rest = TopicRest(0)
    assert rest.new_topics({"in.a": A}) == []
    assert not _read(rest, (0.0, DONE), (1000.0, DONE))
    assert rest.awake({"in.a": A}) == {"in.a": A}


def test_another_topic_of_the_name_is_looked_at_anew():
    rest = TopicRest(IDLE)
    _read(rest, (0.0, DONE))
    again = Wanted("in.a", 2, 200)
    assert rest.keep({"in.a": A}) == []
    assert rest.keep({"in.a": again}) == [A]
    assert rest.asleep == {}
    assert rest.new_topics({"in.a": again}) == [again]


# -------------------------------------------------------------------- many topics


def test_who_has_waited_longest_comes_first_and_the_exchange_before_all():
    rest = TopicRest(IDLE)
    wanted = {w.topic: w for w in (A, B, EXCHANGE)}
    for item in (B, EXCHANGE):
        rest.look(item, TopicProgress((1,), (0,)), 1.0, clocked=False)
    rest.look(A, DONE, 1.0, clocked=False)
    rest.wake("in.a", 5.0)
    assert list(rest.awake(wanted)) == [names.EXCHANGE, "in.b", "in.a"]
    rest.queue("in.b", 6.0)
    assert list(rest.awake(wanted)) == [names.EXCHANGE, "in.a", "in.b"]


def test_the_quiet_give_way_first_then_who_has_had_a_turn():
    now = 1000.0
    long_quiet = Turn("in.a", 2, 0.0, now - 50)
    quiet = Turn("in.b", 2, 0.0, now - 5)
    just_quiet = Turn("in.c", 2, now - 3, now - 1)
    old = Turn("in.d", 2, now - TURN_SECONDS - 1, None)
    older = Turn("in.e", 4, now - TURN_SECONDS - 2, None)
    young = Turn("in.f", 2, now - TURN_SECONDS + 1, None)
    exchange = Turn(names.EXCHANGE, 4, 0.0, 0.0)
    turns = [young, old, exchange, quiet, older, just_quiet, long_quiet]
    assert giving_way(1, turns, now) == [long_quiet]
    assert giving_way(3, turns, now) == [long_quiet, quiet]
    assert giving_way(5, turns, now) == [long_quiet, quiet, older]
    assert giving_way(100, turns, now) == [long_quiet, quiet, older, old]
    assert giving_way(0, turns, now) == []


# -------------------------------------------------------------------- the law

_STREAMS = {
    "o": "CREATE STREAM s INTO o AS SELECT _wstart ws, count(*) n, sum(a) s FROM m PARTITION BY tbname INTERVAL(10a)",
    "p": "CREATE STREAM x INTO p AS SELECT _wstart ws, count(*) n FROM m PARTITION BY g INTERVAL(10a)",
    "q": "CREATE STREAM f TRIGGER AT_ONCE INTO q AS SELECT ts, a FROM m WHERE a > 2 PARTITION BY tbname",
    "r": "CREATE STREAM h FILL_HISTORY 1 INTO r AS SELECT _wstart ws, count(*) n FROM m PARTITION BY tbname INTERVAL(10a)",
    "u": "CREATE STREAM d TRIGGER MAX_DELAY 5s INTO u AS SELECT _wstart ws, count(*) n FROM m PARTITION BY tbname INTERVAL(1s)",
    "v": "CREATE STREAM e INTO v AS SELECT _wstart ws, count(*) n FROM m PARTITION BY tbname SESSION(ts, 6a)",
}


def _play(mesh: Mesh, seed: int, *, rests: bool) -> dict[str, list[tuple[object, ...]]]:
    """Results of the same records and controls; with *rests* every task ends wherever all there is
    is saved, by the dice.
    """
    dice = random.Random(seed)
    sleep = random.Random(seed + 1)
    for step in range(40):
        if step in (4, 20):
            for n, text in enumerate(_STREAMS.values()):
                if n % 2 == step // 20:
                    mesh.stream(1000 + 100 * n, text)
        kind = dice.random()
        if kind < 0.7:
            mesh.rows((f"t{dice.randrange(3)}", 3 * step, dice.randrange(5), dice.randrange(2)))
        elif kind < 0.9:
            mesh.log.now += 4000
            mesh.control(ControlRecord("tick", time=mesh.log.now))
        else:
            mesh.control(ControlRecord("barrier", id=f"b{step}"))
        mesh.run()
        if rests and sleep.random() < 0.5:
            for processor in mesh.processors.values():
                processor.close()
            mesh.processors.clear()
    mesh.close()
    return {table: sorted(mesh.results(table)) for table in _STREAMS}


@pytest.mark.parametrize("seed", range(6))
def test_rest_never_changes_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    (tmp_path / "awake").mkdir()
    (tmp_path / "resting").mkdir()
    always = _play(Mesh(tmp_path / "awake", monkeypatch), seed, rests=False)
    now_and_then = _play(Mesh(tmp_path / "resting", monkeypatch), seed, rests=True)
    assert now_and_then == always
    assert all(always[table] for table in ("o", "p", "q"))

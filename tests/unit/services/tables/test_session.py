from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from penstock.errors import PenstockError
from tests.nightly import drawn
from tests.unit.services.tables.kit import Log, Node, rows, stream_table, whole_rows

Nodes = Callable[..., list[Node]]


@pytest.fixture
async def nodes(tmp_path: Path) -> Nodes:
    def make(count: int = 2, **options: object) -> list[Node]:
        table = stream_table(**options)  # type: ignore[arg-type]
        log = Log(table.topic)
        return [
            Node(f"N{i}", table, log, tmp_path, asyncio.get_running_loop())
            for i in range(1, count + 1)
        ]

    return make


async def settled(future: asyncio.Future[int]) -> int | str:
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if not future.done():
        return "waits"
    error = future.exception()
    return (
        future.result()
        if error is None
        else error.code
        if isinstance(error, PenstockError)
        else repr(error)
    )


async def test_a_write_is_answered_when_it_is_in_the_log_and_no_leader_came_in_between(
    nodes: Nodes,
) -> None:
    a, _ = nodes()
    a.lead(1)
    a.settle()
    done = a.write("p", 1, rows(1, 2))
    assert a.session is not None
    a.session.work()
    assert await settled(done) == "waits"
    a.bus.pass_on()
    assert await settled(done) == "waits"
    a.bus.report()  # its place says that nothing is in between: no need to read it back
    assert await settled(done) == 2
    a.read()
    assert a.numbers() == [1, 2]


async def test_after_a_gap_in_the_log_a_write_is_read_back_before_it_is_answered(
    nodes: Nodes,
) -> None:
    a, _ = nodes()
    a.lead(1)
    a.settle()
    a.log.add(b"\0\0\0\0\x01a control record of somebody")
    done = a.write("p", 1, rows(1))
    assert a.session is not None
    a.session.work()
    a.bus.pass_on()
    a.bus.report()
    assert await settled(done) == "waits"
    a.read()
    assert await settled(done) == 1


async def test_a_leader_that_slept_answers_nothing_and_its_rows_do_not_count(nodes: Nodes) -> None:
    a, b = nodes()
    a.lead(1)
    a.settle()
    late = a.write("p", 1, rows(1, 2, 3))
    assert a.session is not None
    a.session.work()  # the record is on its way while the node stops
    b.lead(2)
    b.settle()
    new = b.write("p", 1, rows(1, 2, 3))
    b.settle()
    assert await settled(new) == 3
    a.bus.pass_on()
    a.bus.report()
    a.read()
    assert await settled(late) == "E_NOT_LEADER"
    b.settle()
    assert a.numbers() == b.numbers() == [1, 2, 3]
    assert a.replica.fenced == b.replica.fenced == 1


async def test_what_a_dead_leader_wrote_is_recognised_when_it_is_sent_again(nodes: Nodes) -> None:
    a, b = nodes()
    a.lead(1)
    a.settle()
    a.write("p", 1, rows(1))
    a.write("p", 2, rows(2), settled=1)
    assert a.session is not None
    a.session.work()
    a.bus.pass_on()  # in the log, but nobody was told
    b.lead(2)
    b.settle()
    again = [
        b.write("p", 1, rows(1)),
        b.write("p", 2, rows(2), settled=1),
        b.write("p", 3, rows(3), settled=1),
    ]
    b.settle()
    assert [await settled(f) for f in again] == [1, 1, 1]
    assert b.numbers() == [1, 2, 3]


async def test_of_a_write_in_several_records_only_the_rest_is_written_by_the_next_leader(
    nodes: Nodes,
) -> None:
    a, b = nodes(limit=100_000)
    a.lead(1)
    a.settle()
    big = pa.concat_tables([rows(*range(i, i + 1000), sym="x" * 8) for i in range(0, 40_000, 1000)])
    a.write("p", 1, big)
    assert a.session is not None
    a.session.work()
    assert len(a.bus.queue) > 2
    a.bus.pass_on(1)
    b.lead(2)
    b.settle()
    assert 0 < b.replica.copy.next < 40_000
    again = b.write("p", 1, big)
    b.settle()
    assert await settled(again) == 40_000
    assert b.numbers() == list(range(40_000))


async def test_a_small_write_is_in_one_record_beside_whatever_else_is_sent(nodes: Nodes) -> None:
    a, b = nodes(limit=100_000)
    a.lead(1)
    a.settle()
    for i in range(20):
        a.write(f"p{i}", 1, rows(*range(5_000 * i, 5_000 * (i + 1)), sym="x" * 8))
    assert a.session is not None
    a.session.work()
    records = len(a.bus.queue)
    assert records > 2
    a.bus.pass_on(records // 2)
    b.lead(2)
    b.settle()
    there = b.numbers()
    assert 0 < len(there) < 100_000
    assert len(there) % 5_000 == 0, "each of them is there or not"


async def test_a_write_that_says_what_it_follows_counts_behind_that_only(nodes: Nodes) -> None:
    a, b = nodes()
    a.lead(1)
    a.settle()
    first = a.write("p", 30, rows(1, 2, 3), after=0)
    assert a.session is not None
    a.session.work()
    # the producer has begun anew, and cuts its rows differently: what is under way must neither be
    # doubled nor called certain
    other = a.write("p", 20, rows(1, 2), after=0)
    same = a.write("p", 30, rows(1, 2, 3), after=0)
    a.session.work()
    assert [await settled(f) for f in (first, other, same)] == ["waits", "E_SEQUENCE", "waits"]
    a.settle()
    assert [await settled(f) for f in (first, same)] == [3, 3]
    ahead = a.write("p", 50, rows(5), after=40)
    bad = a.write("p", 40, rows(4, sym="x" * 9), after=30)
    a.settle()
    assert [await settled(f) for f in (ahead, bad)] == ["E_SEQUENCE", "E_ROW"]
    b.lead(2)
    b.settle()
    more = b.write("p", 40, rows(4), after=30)
    b.settle()
    assert await settled(more) == 1
    assert b.numbers() == [1, 2, 3, 4]


async def test_rows_that_were_refused_may_come_in_another_write(nodes: Nodes) -> None:
    a, _ = nodes()
    a.lead(1)
    a.settle()
    bad = a.write("p", 20, rows(1, 2, sym="x" * 9), after=0)
    a.settle()
    good = a.write("p", 10, rows(1), after=0)
    a.settle()
    assert [await settled(f) for f in (bad, good)] == ["E_ROW", 1]
    assert a.numbers() == [1]


async def test_writes_out_of_order_are_refused_so_that_nothing_is_skipped(nodes: Nodes) -> None:
    a, _ = nodes()
    a.lead(1)
    a.settle()
    ahead = a.write("p", 2, rows(2), settled=1)
    a.settle()
    assert await settled(ahead) == "E_SEQUENCE"
    first = a.write("p", 1, rows(1))
    second = a.write("p", 2, rows(2), settled=1)
    a.settle()
    assert (await settled(first), await settled(second)) == (1, 1)
    assert a.numbers() == [1, 2]


async def test_a_row_that_does_not_fit_costs_its_own_write_only_and_says_the_same_again(
    nodes: Nodes,
) -> None:
    a, _ = nodes()
    a.lead(1)
    a.settle()
    good = a.write("p", 1, rows(1))
    bad = a.write("p", 2, rows(2, sym="x" * 9), settled=1)
    next_ = a.write("p", 3, rows(3), settled=1)
    a.settle()
    assert [await settled(f) for f in (good, bad, next_)] == [1, "E_ROW", 1]
    again = a.write("p", 2, rows(2, sym="x" * 9))
    a.settle()
    assert await settled(again) == "E_ROW"
    assert a.numbers() == [1, 3]


async def test_d6_the_first_row_of_a_key_wins_also_while_others_are_under_way(nodes: Nodes) -> None:
    a, b = nodes(keys=("sym",))
    a.lead(1)
    a.settle()
    done = [a.write("p", 1, rows(1, 2, sym="A")), a.write("q", 1, rows(3, sym="B"))]
    assert a.session is not None
    a.session.work()
    done.append(a.write("q", 2, rows(4, sym="A"), settled=1))
    a.settle()
    assert [await settled(f) for f in done] == [2, 1, 1]
    assert a.numbers() == [1, 3]
    b.lead(2)
    b.settle()
    b.write("q", 3, rows(5, sym="B"))
    b.settle()
    assert b.numbers() == [1, 3]


async def test_d6_composite_keys(nodes: Nodes) -> None:
    a, _ = nodes(keys=("sym", "n"))
    a.lead(1)
    a.settle()
    a.write("p", 1, rows(1, 2, 1, sym="A"))
    a.write("p", 2, rows(1, sym="B"))
    a.settle()
    assert a.numbers() == [1, 2, 1]


async def test_two_leaders_of_one_epoch_end_with_one(nodes: Nodes) -> None:
    """Redis lost its counter and gave the same epoch twice."""
    a, b = nodes()
    a.lead(1)
    b.lead(1)
    a.settle()
    b.settle()
    assert a.session is not None and b.session is not None
    assert a.session.serving and not b.session.serving and b.session.over
    with pytest.raises(PenstockError, match="does not lead"):
        b.write("p", 1, rows(1))


async def test_d43_the_leader_fills_the_column_for_the_time_of_arrival(nodes: Nodes) -> None:
    a, _ = nodes(stamped="came")
    a.lead(1)
    a.settle()
    a.write("p", 1, rows(1))
    a.settle()
    chunk = a.replica.copy.read(0, 10)
    assert chunk is not None
    assert chunk.batch.column("came").to_pylist()[0].timestamp() == a.log.clock.now() / 1e9


async def test_a_write_that_is_being_made_ready_when_leadership_ends_is_answered_too(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (a,) = nodes(1)
    session = a.lead(1)
    a.settle()
    given = a.replica.rows.to_frame

    def slowly(data: pa.Table, now: int) -> object:
        session.end(
            "somebody else leads"
        )  # by another thread, while this one has taken the write and not sent it
        return given(data, now)

    monkeypatch.setattr(a.replica.rows, "to_frame", slowly)
    done = a.write("p", 1, rows(1))
    session.work()
    assert await settled(done) == "E_NOT_LEADER"
    assert a.bus.queue == []


async def test_a_small_write_alone_goes_straight_and_what_comes_meanwhile_goes_behind_it(
    nodes: Nodes,
) -> None:
    (a,) = nodes(1)
    a.lead(1)
    a.settle()
    a.direct.open = True
    first = a.write("p", 1, whole_rows(1))
    a.settle()
    assert a.direct.sent == 0  # of rows like these nothing is known yet
    second = a.write("p", 2, whole_rows(2))
    third = a.write("p", 3, whole_rows(3), settled=2)
    assert a.session is not None
    assert (a.direct.sent, a.session.work(), a.bus.queue) == (1, False, [])
    a.direct.pass_on()
    a.direct.report()
    assert await settled(second) == 1
    assert a.session.work()
    a.settle()
    assert (await settled(first), await settled(third), a.direct.sent) == (1, 1, 1)
    # what the broker refuses goes the long way; what nobody knows ends the session
    fourth = a.write("p", 4, whole_rows(4))
    assert a.direct.sent == 2
    a.direct.refuse()
    a.settle()
    assert await settled(fourth) == 1
    fifth = a.write("p", 5, whole_rows(5))
    a.direct.cut()
    assert await settled(fifth) == "E_NOT_LEADER"
    assert a.session.over
    a.read()
    assert a.numbers() == [1, 2, 3, 4]


async def test_the_writer_thread_is_woken_for_what_waits_and_never_for_nothing(
    nodes: Nodes,
) -> None:
    (a,) = nodes(1)
    a.lead(1)
    a.settle()
    a.write("p", 1, whole_rows(1))
    a.settle()
    a.direct.open = True
    a.woken = 0
    alone = a.write("p", 2, whole_rows(2))
    a.direct.pass_on()
    a.direct.report()
    assert (await settled(alone), a.direct.sent, a.woken) == (1, 1, 0)
    a.write("p", 3, whole_rows(3))
    behind = a.write("p", 4, whole_rows(4), settled=3)
    assert a.session is not None
    assert (a.woken, a.session.work()) == (
        1,
        False,
    )  # it comes while the loop has a record under way, and finds that it has to wait
    a.direct.pass_on()
    a.direct.report()
    assert (a.woken, a.session.work()) == (2, True)
    a.settle()
    assert await settled(behind) == 1


async def test_a_repeat_a_gap_and_a_wrong_row_are_judged_as_ever_on_the_short_way(
    nodes: Nodes,
) -> None:
    (a,) = nodes(1)
    a.lead(1)
    a.settle()
    for number in (1, 2):
        a.write("p", number, whole_rows(number))
        a.settle()
        a.direct.open = True
    assert a.direct.sent == 1
    repeat = a.write("p", 2, whole_rows(2))
    gap = a.write("p", 9, whole_rows(9), settled=3)
    a.settle()
    assert (await settled(repeat), await settled(gap)) == (1, "E_SEQUENCE")
    wrong = a.write("p", 3, whole_rows(3).set_column(1, "sym", pa.array(["far too long"])))
    a.settle()
    assert await settled(wrong) == "E_ROW"
    assert (a.direct.sent, a.numbers()) == (1, [1, 2])


_kinds = (
    ["write"] * 4
    + ["work"] * 3
    + ["pass"] * 3
    + ["report"] * 3
    + ["read"] * 2
    + ["lead"] * 2
    + ["wake", "noise", "open"]
)
_kinds += ["straight"] * 3 + ["answer"] * 3 + ["refuse", "cut"]
steps = some.lists(
    some.tuples(some.sampled_from(_kinds), some.integers(0, 2)), min_size=20, max_size=80
)


@settings(max_examples=drawn(60), deadline=None)
@given(steps)
async def test_whatever_happens_acked_rows_are_there_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, plan: list[tuple[str, int]]
) -> None:
    """Three nodes lead, sleep and wake in any order; one producer goes from one to the next. Each
    node's copy ends the same.
    """
    table = stream_table(limit=100_000)
    log = Log(table.topic)
    loop = asyncio.get_running_loop()
    directory = tmp_path_factory.mktemp("copies")
    nodes = [Node(f"N{i}", table, log, directory, loop) for i in range(3)]
    epoch = sequence = 0
    leader = nodes[0]
    open_: dict[int, list[asyncio.Future[int]]] = {}
    acked: set[int] = set()

    async def look() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in list(open_):
            if any(f.done() and f.exception() is None for f in open_[number]):
                acked.add(number)
                del open_[number]

    def send(node: Node, number: int) -> None:
        if node.session is None:
            return
        try:
            open_[number].append(node.write("p", number, whole_rows(number), settled=min(open_)))
        except PenstockError:
            return

    for what, which in plan:
        node = nodes[which]
        if what == "write":
            sequence += 1
            open_[sequence] = []
            send(node if node.session is not None and not node.session.over else leader, sequence)
        elif (
            what == "wake"
        ):  # the producer has doubts and sends everything again, in order, to somebody who may lead
            for number in sorted(open_):
                send(leader, number)
        elif what == "work" and node.session is not None:
            node.session.work()
        elif what == "pass":
            node.bus.pass_on(1)
        elif what == "report":
            node.bus.report(1)
        elif what == "read":
            node.read(2)
        elif what == "lead":  # its record may come behind others that are under way
            epoch += 1
            node.lead(epoch)
            node.bus.pass_on()
            node.read()
            leader = node
        elif what == "open":
            node.direct.open = not node.direct.open
        elif what == "straight":
            node.direct.pass_on()
        elif what == "answer":
            node.direct.report()
        elif what == "refuse":
            node.direct.refuse()
        elif what == "cut":
            node.direct.cut()
        elif what == "noise":
            log.add(b"\0\0\0\0\x01")
        await look()
    last = nodes[0]
    for node in nodes:
        node.settle()
    last.lead(epoch + 1)
    last.settle()
    await look()
    for number in sorted(open_):
        send(last, number)
    for node in nodes:
        node.settle()
    await look()
    assert not open_
    for node in nodes:
        assert node.numbers() == list(range(1, sequence + 1))
    assert acked == set(range(1, sequence + 1))

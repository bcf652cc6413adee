"""Live rows in pieces give what one frame of them would."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from penstock.windows.general.live_pieces import LivePieces

_EMPTY = pl.DataFrame(schema={"_seq": pl.Int64, "ts": pl.Int64})
_calls = st.lists(
    st.tuples(st.sampled_from(["add", "remove"]), st.lists(st.integers(0, 60), max_size=40)),
    max_size=25,
)


@given(
    _calls,
    st.lists(st.integers(0, 60), max_size=5),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=5),
)
def test_pieces_hold_what_one_frame_would(
    calls: list[tuple[str, list[int]]], times: list[int], stretches: list[tuple[int, int]]
) -> None:
    live = LivePieces(_EMPTY, "ts")
    whole = _EMPTY
    following = 0
    for kind, values in calls:
        if kind == "add":
            rows = pl.DataFrame(
                {"_seq": range(following, following + len(values)), "ts": values},
                schema=_EMPTY.schema,
            )
            following += len(values)
            live.add(rows)
            whole = pl.concat([whole, rows])
        else:
            known = whole.get_column("_seq").to_list()
            gone = sorted({known[v % len(known)] for v in values}) if known else []
            live.remove(np.array(gone, np.int64))
            whole = whole.filter(~pl.col("_seq").is_in(gone))
    assert live.count == whole.height
    assert live.all.sort("_seq").equals(whole.sort("_seq"))
    wanted = whole.filter(pl.col("ts").is_in(times)).sort("_seq")
    found = (
        pl.concat([_EMPTY, *live.at(np.array(times, np.int64))])
        .filter(pl.col("ts").is_in(times))
        .sort("_seq")
    )
    assert found.equals(wanted)
    low = np.array([s[0] for s in stretches], np.int64)
    high = np.array([s[0] + s[1] for s in stretches], np.int64)
    inside = pl.any_horizontal(
        False,
        *(pl.col("ts").is_between(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)),
    )
    got = pl.concat([_EMPTY, *live.between(low, high)]).filter(inside).sort("_seq")
    assert got.equals(whole.filter(inside).sort("_seq"))


def test_many_small_calls_make_few_pieces() -> None:
    live = LivePieces(_EMPTY, "ts")
    for n in range(2_000):
        live.add(pl.DataFrame({"_seq": [n], "ts": [n]}))
    assert live.count == 2_000
    assert len(live.between(np.array([0]), np.array([2_000]))) <= 12
    assert len(live.at(np.array([1_999]))) == 1

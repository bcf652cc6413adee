"""History cut by time: every row is in one stretch, and a stretch holds as many rows as it may
unless they share a moment.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from penstock.records import ControlRecord, decode, encode
from penstock.windows.kernel import LATEST
from spark_jobs.filling import Filling, stretches

some = st.lists(st.one_of(st.integers(0, 50), st.integers(-(10**15), 10**15)), max_size=200)


@given(some, st.integers(1, 40))
def test_every_row_is_in_one_stretch_of_few_rows(times: list[int], most: int) -> None:
    all_ = np.array(times, np.int64)

    def asked(low: int, high: int) -> Iterator[npt.NDArray[np.int64]]:
        yield from np.array_split(all_[(all_ >= low) & (all_ <= high)], 3)

    ends = stretches(asked, most)
    assert ends == sorted(set(ends)) and ends[-1] == LATEST
    places = np.searchsorted(ends, all_)
    for place in set(places.tolist()):
        inside = all_[places == place]
        assert len(inside) <= most or len(set(inside.tolist())) == 1
    assert len(ends) <= 1 + 2 * len(times) / most + len(set(times))


def test_what_is_left_travels_from_record_to_record() -> None:
    task = Filling('{"0": 7}', (10, 20, LATEST), 3)
    done = []
    while task.ends:
        control = decode(ControlRecord, encode(task.control(5, "p", 3)))
        assert (control.kind, control.stream, control.producer, control.offset) == (
            "fill",
            5,
            "p",
            3,
        )
        task = Filling.read(control)
        done.append((task.low, task.ends[0], task.percent))
        task = task.rest
    assert done == [(-(1 << 62), 10, 0), (11, 20, 33), (21, LATEST, 66)]
    assert task.control(5, "p", 3).kind == "filled"

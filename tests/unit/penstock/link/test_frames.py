from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.link.frames import FrameError, pack, unpack


@given(
    st.dictionaries(st.text(), st.integers() | st.text()),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=2000),
)
def test_what_is_packed_is_unpacked(header: dict[str, object], values: list[int]) -> None:
    rows = pa.table({"v": pa.array(values, pa.int64())})
    assert unpack(pack(header, rows)) == (header, rows)


@given(st.binary(max_size=300) | st.text(max_size=50))
def test_anything_else_is_one_error(data: bytes | str) -> None:
    try:
        header, _ = unpack(data)
        assert isinstance(header, dict)
    except FrameError:
        pass


def test_a_cut_frame_is_an_error() -> None:
    frame = pack({"ch": 1}, pa.table({"v": list(range(10_000))}))
    with pytest.raises(FrameError):
        unpack(frame[: len(frame) // 2])

"""The Confluent frame in front of every record value: a zero byte and the schema id."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock import tuning

#: bytes in front of an Avro body
FRAME_BYTES = 5


def frame_of(schema_id: int) -> bytes:
    """Return the five bytes in front of an Avro body."""
    return b"\0" + schema_id.to_bytes(4, "big")


def schema_ids(
    values: Sequence[bytes | None], array: pa.BinaryArray | None = None
) -> npt.NDArray[np.int64]:
    """Return the schema id of each record value, -1 where there is no Confluent frame.

    Args:
        array: the same values, where they are at hand as an array.
    """
    if len(values) <= tuning.VALUES_UNFRAMED_ONE_BY_ONE:
        return np.array(
            [
                int.from_bytes(v[1:5], "big") if v is not None and len(v) >= 5 and not v[0] else -1
                for v in values
            ],
            np.int64,
        )
    return _ids_in(pa.array(values, pa.binary()) if array is None else array)


def _ids_in(values: pa.BinaryArray) -> npt.NDArray[np.int64]:
    """`schema_ids`, read where the values lie."""
    _, ends, data = values.buffers()
    octets = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    if len(octets) < FRAME_BYTES:
        return np.full(len(values), -1)
    bounds = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    framed = np.diff(bounds) >= FRAME_BYTES
    if values.null_count:
        framed &= values.is_valid().to_numpy(zero_copy_only=False)
    begin = np.where(framed, bounds[:-1], 0)
    # four bytes from any place on, the first byte apart
    fours: npt.NDArray[np.uint32] = np.ndarray(
        (len(octets) - FRAME_BYTES + 1,), ">u4", octets, 1, (1,)
    )
    return np.where(framed & (octets[begin] == 0), fours[begin].astype(np.int64), -1)

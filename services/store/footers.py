"""What a query must know of a segment before DuckDB reads it; from its footer, once a process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.types import TIME_LIMITS

#: segments whose footers are remembered
_MOST = 1 << 16
#: names and types of a file's columns, in order
Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Footer:
    """`columns`: names and types; `far_times`: holds values that are no times of its precision."""

    columns: Columns
    far_times: bool


@lru_cache(maxsize=_MOST)
def footer(path: Path, precision: str) -> Footer:
    """Return what the footer of a segment says; the times of its table are of *precision*."""
    about = pq.read_metadata(path)
    schema = about.schema.to_arrow_schema()
    columns = tuple((field.name, str(field.type)) for field in schema)
    return Footer(_shared(columns), _has_far_times(about, schema, precision))


@lru_cache(maxsize=_MOST)
def _shared(columns: Columns) -> Columns:
    """Return the same object for the same columns: most files of a table have them."""
    return columns


def _has_far_times(about: pq.FileMetaData, schema: pa.Schema, precision: str) -> bool:
    low, high = TIME_LIMITS[precision]
    places = [i for i, field in enumerate(schema) if pa.types.is_timestamp(field.type)]
    for group in range(about.num_row_groups):
        for place in places:
            found = about.row_group(group).column(place).statistics
            if (
                found is not None
                and found.has_min_max
                and (found.min_raw < low or found.max_raw > high)
            ):
                return True
    return False

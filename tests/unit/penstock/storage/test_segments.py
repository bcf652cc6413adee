"""What the file of a segment says of its columns."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.storage import segments


def test_a_column_with_nan_is_not_described(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "ts": pa.array([1, 2, 3], pa.timestamp("ms", "UTC")),
            "odd": pa.array([1.0, float("nan"), None]),
            "single": pa.array([float("nan")] * 3, pa.float32()),
            "even": pa.array([1.0, 2.0, None]),
            "a.b": pa.array([None, None, None], pa.float64()),
        }
    )
    made = segments.write(str(tmp_path), rows, "ts", 0, 1, fresh=True, low=1, high=3)
    group = pq.ParquetFile(made.path).metadata.row_group(0)
    described = {
        group.column(i).path_in_schema: group.column(i).is_stats_set
        for i in range(group.num_columns)
    }
    wanted = {"ts": True, "odd": False, "single": False, "even": True, "a.b": True}
    assert described == wanted
    # NaN is larger than any number, as in streams
    with duckdb.connect() as con:
        found = con.sql(f"SELECT count(*) FROM '{made.path}' WHERE odd > 1.5").fetchall()
    assert found == [(1,)]

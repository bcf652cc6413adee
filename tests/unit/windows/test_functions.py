"""User-defined functions in streams, on the kernels: scalars anywhere, aggregates over windows; a
failing one costs its own row.
"""

from __future__ import annotations

import polars as pl
import pytest

from penstock.errors import SqlSemanticError
from penstock.sql.plan import StreamPlan
from penstock.types import ColumnType
from penstock.udf import UserFunction
from penstock.windows import Kernel, make_kernel
from tests.unit.sql.memory_view import MemoryView, plan

T0 = 1_700_006_400_000
DDL = "CREATE STABLE m (ts TIMESTAMP, a INT, b DOUBLE) TAGS (g INT)"
INT = ColumnType("INT")
DOUBLE = ColumnType("DOUBLE")
TWICE = UserFunction(
    1,
    "twice",
    (INT,),
    INT,
    "def twice(a):\n    if 13 in a.to_pylist(): raise ValueError('thirteen')\n    return pc.multiply(a, 2)",
)
MIDDLE = UserFunction(
    2,
    "middle",
    (DOUBLE,),
    DOUBLE,
    "def middle(a):\n    found = sorted(a.to_pylist())\n    return found[len(found) // 2]",
    aggregate=True,
)


def planned(text: str) -> StreamPlan:
    view = MemoryView(DDL)
    view.functions = {"twice": TWICE, "middle": MIDDLE}
    made = plan(text, view).plan
    return StreamPlan.from_json(made.to_json())


def frame(*rows: tuple[str, int, int, float]) -> pl.DataFrame:
    schema = {
        "_step": pl.UInt32,
        "_offset": pl.Int64,
        "_now": pl.Int64,
        "_op": pl.Int8,
        "tbname": pl.String,
        "ts": pl.Int64,
        "a": pl.Int32,
        "b": pl.Float64,
        "g": pl.Int32,
    }
    return pl.DataFrame(
        [(i, i, T0, 0, t, T0 + ts, a, b, 1) for i, (t, ts, a, b) in enumerate(rows)],
        schema=schema,
        orient="row",
    )


def restarted(kernel: Kernel, made: StreamPlan) -> Kernel:
    again = make_kernel(made)
    again.restore([kernel.delta(True)])
    return again


@pytest.mark.parametrize("options", ["TRIGGER AT_ONCE", "TRIGGER AT_ONCE IGNORE UPDATE 0"])
def test_functions_in_a_window(options: str) -> None:
    made = planned(
        f"CREATE STREAM s {options} INTO o AS SELECT _wstart ws, sum(twice(a)) t, middle(b) + 1 m FROM m WHERE twice(a) < 100 "
        "PARTITION BY tbname INTERVAL(1s)"
    )
    kernel = make_kernel(made)
    emission = kernel.apply(frame(("t", 0, 1, 5.0), ("t", 1, 2, 1.0), ("t", 2, 60, 9.0)))
    assert emission.rows is not None and emission.rows.select("t", "m").rows() == [(6, 6.0)]
    kernel = restarted(kernel, made)
    emission = kernel.apply(frame(("t", 3, 13, 2.0), ("t", 4, 4, 2.0)))
    assert emission.rows is not None and emission.rows.select("t", "m").rows() == [(14, 3.0)]
    assert (
        emission.failed is not None
        and "thirteen" in emission.failed["_reason"][0]
        and emission.failed["a"].to_list() == [13]
    )


def test_a_failing_aggregate_costs_its_result_only() -> None:
    made = planned(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT _wstart ws, count(*) n, middle(b) m FROM m PARTITION BY tbname INTERVAL(1s)"
    )
    emission = make_kernel(made).apply(frame(("t", 0, 1, 5.0), ("u", 0, 1, float("nan"))))
    assert emission.rows is not None and emission.rows.select("n", "m").rows() == [(1, 5.0)]
    assert emission.failed is not None and "IndexError" in emission.failed["_reason"][0]


def test_functions_without_a_window() -> None:
    made = planned(
        "CREATE STREAM s TRIGGER AT_ONCE INTO o AS SELECT ts, twice(a) t FROM m PARTITION BY tbname"
    )
    emission = make_kernel(made).apply(frame(("t", 0, 1, 5.0), ("t", 1, 13, 5.0)))
    assert emission.rows is not None and emission.rows["t"].to_list() == [2]
    assert emission.failed is not None and emission.failed.height == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT _wstart, sum(twice(a, 1)) FROM m INTERVAL(1s)", "E_FUNCTION_ARGUMENT"),
        ("SELECT _wstart, sum(middle(b)) FROM m INTERVAL(1s)", "E_AGGREGATE_HERE"),
        ("SELECT _wstart, middle(b, a) FROM m INTERVAL(1s)", "E_FUNCTION_ARGUMENT"),
        ("SELECT _wstart, middle(b) FROM m INTERVAL(1s) FILL(PREV)", "E_UNSUPPORTED_QUERY"),
        ("SELECT _wstart, sum(twice(1)) FROM m INTERVAL(1s)", "E_FUNCTION_ARGUMENT"),
        ("SELECT _wstart, sum(thrice(a)) FROM m INTERVAL(1s)", "E_UNKNOWN_FUNCTION"),
    ],
)
def test_what_is_refused(text: str, code: str) -> None:
    with pytest.raises(SqlSemanticError) as caught:
        planned(f"CREATE STREAM s INTO o AS {text}")
    assert caught.value.code == code

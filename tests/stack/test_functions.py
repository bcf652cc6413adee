"""User-defined functions through the mesh: refused by default, computed in streams and queries, and
alone with what goes wrong in them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import penstock
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.names import unique

T0 = 1_700_000_000_000
SCALAR = """CREATE FUNCTION scaled(v DOUBLE, k INT) RETURNS DOUBLE LANGUAGE PYTHON AS '
def scaled(v, k):
    numbers = v.to_pylist()
    if 13.0 in numbers:
        raise ValueError("thirteen")
    while 99.0 in numbers:
        pass
    return pc.multiply(v, pc.cast(k, pa.float64()))
'"""
AGGREGATE = """CREATE AGGREGATE FUNCTION median(v DOUBLE) RETURNS DOUBLE LANGUAGE PYTHON AS '
def median(v):
    found = sorted(v.to_pylist())
    return found[len(found) // 2]
'"""


def code(action: Callable[[], object]) -> str:
    with pytest.raises(PenstockError) as caught:
        action()
    return caught.value.code


def test_refused_by_default(mesh: RunningMesh) -> None:
    with penstock.connect(mesh.gateway_url, password=mesh.password) as db:
        assert code(lambda: db.execute(SCALAR)) == "E_FORBIDDEN"
        assert db.query("SHOW FUNCTIONS").rows == []


@pytest.mark.long
def test_functions_in_streams_and_queries(own_mesh: Callable[..., RunningMesh]) -> None:
    mesh = own_mesh(environment={"PENSTOCK_GATEWAY_ALLOW_FUNCTIONS": "1"})
    with penstock.connect(mesh.gateway_url, password=mesh.password, database=unique("fn")) as db:
        db.execute(
            f"CREATE DATABASE {db.database} PARTITIONS 2; CREATE STABLE m (ts TIMESTAMP, v DOUBLE) TAGS (g INT)"
        )
        db.execute(SCALAR)
        db.execute(AGGREGATE)
        bad = "CREATE FUNCTION bad(v INT) RETURNS INT LANGUAGE PYTHON AS 'open(\"/etc/passwd\")'"
        assert code(lambda: db.execute(bad)) == "E_FUNCTION_CODE"
        db.execute(
            "CREATE STREAM s TRIGGER AT_ONCE INTO r AS SELECT _wstart, count(*) AS n, sum(scaled(v, 2)) AS t, median(v) AS m FROM m "
            "PARTITION BY tbname INTERVAL(10s)"
        )
        db.execute(
            "CREATE STREAM plain TRIGGER AT_ONCE INTO rp AS SELECT _wstart, count(*) AS n FROM m PARTITION BY tbname INTERVAL(10s)"
        )
        db.write(
            "m",
            [
                {"tbname": "t", "ts": T0 + i, "v": float(v), "g": 1}
                for i, v in enumerate([5, 1, 13, 9])
            ],
        )
        db.drain()
        assert db.query("SELECT n, t, m FROM r").rows == [(3, 30.0, 5.0)]
        assert db.query("SELECT n FROM rp").rows == [(4,)]
        # one that hangs costs its row; the function goes on in another process, and nobody beside
        # it has lost anything
        db.write("m", [{"tbname": "t", "ts": T0 + 10, "v": 99.0, "g": 1}])
        db.write("m", [{"tbname": "t", "ts": T0 + 11, "v": 7.0, "g": 1}])
        eventually(lambda: db.query("SELECT n, t, m FROM r").rows == [(4, 44.0, 7.0)])
        db.drain()
        assert db.query("SELECT n FROM rp").rows == [(6,)]
        assert db.query("SELECT scaled(v, 3) AS x FROM m WHERE v < 6 ORDER BY x").rows == [
            (3.0,),
            (15.0,),
        ]
        assert db.query("SELECT _wstart, median(v) AS m FROM m INTERVAL(10s)").rows[0][1] == 9.0
        # in use; replaced for later ones only; gone when nobody uses it
        assert code(lambda: db.execute("DROP FUNCTION scaled")) == "E_IN_USE"
        assert db.query("SHOW FUNCTIONS").to_polars().select("name", "streams").rows() == [
            ("median", 1),
            ("scaled", 1),
        ]
        db.execute(SCALAR.replace("CREATE", "CREATE OR REPLACE").replace("pc.multiply", "pc.add"))
        db.write("m", [{"tbname": "t", "ts": T0 + 12, "v": 1.0, "g": 1}])
        db.drain()
        assert db.query("SELECT n, t FROM r").rows == [(5, 46.0)]
        assert db.query("SELECT scaled(v, 3) AS x FROM m WHERE v = 5").rows == [(8.0,)]
        db.execute(
            "DROP STREAM s; DROP FUNCTION scaled; DROP FUNCTION median; DROP FUNCTION IF EXISTS median"
        )
        assert db.query("SHOW FUNCTIONS").rows == []

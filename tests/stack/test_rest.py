"""A database at rest wakes by a statement and by a row, and its results are those of one that was
awake all the time.
"""

from __future__ import annotations

import json

import redis

import penstock
from penstock import names
from penstock.mesh.running import RunningMesh
from tests.stack.conftest import eventually
from tests.stack.names import unique

T0 = 1_700_000_000_000


def test_a_database_at_rest_wakes_and_gives_the_same_results(mesh: RunningMesh) -> None:
    links = redis.Redis.from_url(mesh.redis_url, decode_responses=True)
    with penstock.connect(mesh.gateway_url, password=mesh.password, database=unique("rest")) as db:
        db.execute(f"CREATE DATABASE {db.database} PARTITIONS 1")
        topic = names.ingest_topic(str(db.database))

        def mode() -> str:
            return str(json.loads(links.get(names.query_heartbeat(topic)) or "{}").get("mode"))

        def put(second: int) -> None:
            db.write("m", [{"tbname": "t", "ts": T0 + 1000 * second, "v": second, "g": 1}])

        assert mode() == "rest"
        db.execute("CREATE STABLE m (ts TIMESTAMP, v INT) TAGS (g INT)")
        # the stream begins before the rows below, though its database still wakes
        db.execute(
            "CREATE STREAM s INTO w AS SELECT _wstart, count(*) n, sum(v) v FROM m"
            " PARTITION BY tbname INTERVAL(10s)"
        )
        for second in (1, 2, 11):
            put(second)
        eventually(lambda: db.query("SELECT n, v FROM w").rows == [(2, 3)])
        eventually(lambda: mode() == "rest", 150)
        put(12)
        put(21)
        eventually(lambda: db.query("SELECT n, v FROM w ORDER BY v").rows == [(2, 3), (2, 23)])
        # results may be there before the next heartbeat says so
        eventually(lambda: mode() == "realtime")
        eventually(lambda: mode() == "rest", 150)
        # what is at rest answers statements, too
        db.execute("FLUSH STREAM s")
        db.drain()
        assert db.query("SELECT n, v FROM w ORDER BY v").rows == [(2, 3), (1, 21), (2, 23)]
        db.execute("DROP STREAM s")

"""The corpus of SQL statements over a whole mesh: the files that tests/sql plays in one process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh
from tests.sql.play import play
from tests.sql.script import Context, read
from tests.sql.test_corpus import FILES


class WholeMesh:
    """Runs statements through the client; a connection for each time zone."""

    name = "mesh"

    def __init__(self, mesh: RunningMesh) -> None:
        self._mesh = mesh
        self._connections: dict[str, penstock.Connection] = {}

    def run(self, sql: str, context: Context) -> pa.Table:
        """See `tests.sql.play.Backend`."""
        connection = self._connection(context.timezone)
        return connection.query(sql, database=context.database or None).table

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _connection(self, timezone: str) -> penstock.Connection:
        if timezone not in self._connections:
            options = ConnectionOptions(timezone=timezone, timeout=150)
            self._connections[timezone] = penstock.connect(
                self._mesh.gateway_url,
                user=self._mesh.user,
                password=self._mesh.password,
                options=options,
            )
        return self._connections[timezone]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_statements_do_what_they_say(mesh: RunningMesh, path: Path) -> None:
    backend = WholeMesh(mesh)
    try:
        wrong = list(play(read(path), backend))
    finally:
        backend.close()
    assert not wrong, f"{path.name}, {len(wrong)} records\n\n" + "\n".join(wrong)

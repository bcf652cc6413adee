"""What a connection has to offer, and that its stream tables are made when they are wanted."""

from __future__ import annotations

import subprocess
import sys

from penstock.client.connection import Connection


def test_the_client_fits_on_one_screen() -> None:
    with Connection("http://127.0.0.1:9/", "root", "x", database="d") as connection:
        public = {name for name in dir(connection) if not name.startswith("_")}
        assert connection.url == "http://127.0.0.1:9"
    settings = {"url", "database", "timezone"}
    rows = {"execute", "query", "write", "writer", "last", "subscribe", "stream"}
    rest = {"ha", "token", "drain", "check", "dialect", "federation_url", "close"}
    assert public == settings | rows | rest


def test_stream_tables_are_made_once_and_closed_with_the_connection() -> None:
    connection = Connection("http://127.0.0.1:9", "root", "x", database="d")
    ha = connection.ha
    assert connection.ha is ha and ha.qualify("t") == "d.t"
    connection.database = "e"
    assert ha.qualify("t") == "e.t"
    connection.close()


def test_who_has_no_stream_tables_does_not_load_them() -> None:
    check = (
        "import sys; from penstock.client.connection import Connection;"
        "Connection('http://127.0.0.1:9', 'root', 'x').close();"
        "sys.exit('penstock.client.stream_tables' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)

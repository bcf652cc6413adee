"""Where Spark and its workers meet."""

from __future__ import annotations

from spark_jobs.session import socket_directory


def test_a_long_data_directory_has_no_room_for_a_socket() -> None:
    assert socket_directory("/var/lib/penstock/run/tmp") == "/var/lib/penstock/run/tmp"
    assert socket_directory("/home/somebody/" + "long/" * 20) == "/tmp"

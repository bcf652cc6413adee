from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
from prometheus_client import Counter

from penstock.errors import ConfigError
from penstock.health import Health


def get(health: Health, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{health.port}{path}", timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read()


def test_ready_when_every_condition_holds() -> None:
    with Health("attic", wait_for=("kafka", "redis")) as health:
        assert get(health, "/healthz")[0] == 200
        health.ready("kafka")
        status, body = get(health, "/readyz")
        assert status == 503 and json.loads(body)["waiting"] == {"redis": "not started yet"}
        health.ready("redis")
        assert get(health, "/readyz")[0] == 200 and health.is_ready()
        health.ready("kafka", False, "no broker")
        assert json.loads(get(health, "/readyz")[1])["waiting"] == {"kafka": "no broker"}


def test_metrics_and_unknown_paths() -> None:
    with Health("attic") as health:
        Counter("penstock_rows", "rows", registry=health.registry).inc(3)
        assert b"penstock_rows_total 3.0" in get(health, "/metrics")[1]
        assert get(health, "/other")[0] == 404


def test_taken_port_says_how_to_change_it() -> None:
    with Health("attic") as first, pytest.raises(ConfigError, match="PENSTOCK_ATTIC_HEALTH_PORT"):
        Health("attic", first.port)

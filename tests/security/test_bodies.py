"""Bodies of requests and frames: who may not write learns so before they are read."""

from __future__ import annotations

import json

import pytest
from websockets.sync.client import connect as dial

from penstock.client.wire import ARROW
from tests.security.conftest import OWN, Attacker
from tests.security.test_link import key_of

PATH = f"/v1/tables/{OWN}/secrets/rows"


@pytest.mark.parametrize("who", ["stranger", "reader"])
@pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson", ARROW])
def test_who_may_not_write_is_told_before_a_body_is_read(
    request: pytest.FixtureRequest, who: str, kind: str
) -> None:
    """If it were decoded first the answer would be that it is none."""
    attacker: Attacker = request.getfixturevalue(who)
    with attacker.http() as client:
        answer = client.post(PATH, content=b"\xff" * (15 << 20), headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "E_FORBIDDEN")
        larger = client.post(PATH, content=b"\xff" * (20 << 20), headers={"Content-Type": kind})
        assert larger.status_code in (400, 403, 413), larger.text
        assert larger.json()["error"]["code"] in ("E_FORBIDDEN", "E_TOO_LARGE")


def test_who_may_not_write_is_told_before_a_frame_is_read(stranger: Attacker) -> None:
    url = stranger.mesh.gateway_url.replace("http", "ws", 1) + "/v1/ingest"
    key = key_of(stranger.name, stranger.password or "")
    with dial(url, additional_headers=key, open_timeout=60, max_size=None) as socket:
        socket.recv(60)
        socket.send(
            json.dumps(
                {"seq": 1, "table": f"{OWN}.secrets", "rows": [{"ts": "nonsense"}] * 100_000}
            )
        )
        assert json.loads(socket.recv(60))["error"]["code"] == "E_FORBIDDEN"

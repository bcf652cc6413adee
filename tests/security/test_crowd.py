"""Many writes at once: a bad one harms none of those beside it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from penstock.client.connection import Connection
from penstock.mesh.running import RunningMesh
from tests.security.conftest import OWN

#: 2026-03-01
T0 = 1_772_323_200_000
#: writes of the same table that are no rows of it
BAD = [
    "[{}]",
    "{}",
    "[1]",
    "[null]",
    "[[]]",
    '["x"]',
    '[{"ts": {}}]',
    '[{"ts": []}]',
    '[{"ts": 1e999}]',
    '[{"ts": null}]',
    '[{"ts": 1772323200000, "who": "\\ud83d"}]',
    '[{"ts": 1772323200000, "who": {"a": 1}}]',
    '[{"ts": 1772323200000, "nobody": 1}]',
    '[{"ts": 1772323200000, "who": "' + "x" * 100 + '"}]',
    '[{"ts": "yesterday"}]',
    '[{"ts": true}]',
    '[{"": 1}]',
    "[",
    "",
    "nonsense",
]


async def test_a_bad_write_harms_no_write_beside_it(mesh: RunningMesh, victims: Connection) -> None:
    """They come together, so the gateway prepares them as one group."""
    victims.execute(f"CREATE TABLE {OWN}.crowd (ts TIMESTAMP, who VARCHAR(32))")
    good = [json.dumps([{"ts": T0 + n, "who": f"w{n}"}]) for n in range(180)]
    headers = {"Content-Type": "application/json"}
    limits = httpx.Limits(max_connections=40)
    async with httpx.AsyncClient(
        base_url=mesh.gateway_url, auth=("root", mesh.password), timeout=120, limits=limits
    ) as client:

        async def write(body: str) -> Any:
            return await client.post(
                f"/v1/tables/{OWN}/crowd/rows", content=body.encode(), headers=headers
            )

        bodies = [
            body
            for n, one in enumerate(good)
            for body in ([one, BAD[n // 9 % len(BAD)]] if n % 9 == 0 else [one])
        ]
        answers = await asyncio.gather(*map(write, bodies))
    for body, answer in zip(bodies, answers, strict=True):
        assert answer.status_code == (400 if body in BAD else 200), (body[:100], answer.text)
    assert victims.query(f"SELECT count(*) FROM {OWN}.crowd").rows == [(180,)]

"""Bins of histogram() from their description."""

from __future__ import annotations

import math

import pytest

from penstock.sql.functions.bins import bin_edges

INF = math.inf


@pytest.mark.parametrize(
    ("kind", "text", "edges"),
    [
        ("user_input", "[1, 3.5, 7]", [1.0, 3.5, 7.0]),
        (
            "linear_bin",
            '{"start": -1, "width": 5, "count": 2, "infinity": false}',
            [-1.0, 4.0, 9.0],
        ),
        (
            "LINEAR_BIN",
            '{"start": 0, "width": -5, "count": 2, "infinity": true}',
            [-INF, -10.0, -5.0, 0.0, INF],
        ),
        (
            "log_bin",
            '{"start": 1, "factor": 2, "count": 3, "infinity": true}',
            [-INF, 1.0, 2.0, 4.0, 8.0, INF],
        ),
        (
            "log_bin",
            '{"start": -1, "factor": 2, "count": 2, "infinity": false}',
            [-4.0, -2.0, -1.0],
        ),
    ],
)
def test_edges_rise(kind: str, text: str, edges: list[float]) -> None:
    assert bin_edges(kind, text) == edges


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("other", "[1, 2]", "'user_input', 'linear_bin' or 'log_bin'"),
        (None, "[1, 2]", "'user_input', 'linear_bin' or 'log_bin'"),
        ("user_input", "[1]", "at least two edges"),
        ("user_input", "[2, 1]", "each above"),
        ("user_input", "[1, true]", "are written as"),
        ("user_input", "[1, NaN]", "are written as"),
        ("user_input", f"[1, {'9' * 400}]", "are written as"),
        ("user_input", "[" * 100_000, "are written as"),
        ("user_input", str(list(range(1002))), "more than 1000"),
        ("user_input", '{"start": 0}', "are written as"),
        ("linear_bin", "[1, 2]", "are written as"),
        ("linear_bin", '{"start": 0, "factor": 2, "count": 2, "infinity": true}', "are written"),
        ("linear_bin", '{"start": 0, "width": 2, "count": 2, "infinity": 1}', "are written"),
        ("linear_bin", '{"start": 0, "width": 2, "count": 1001, "infinity": true}', "count is"),
        ("linear_bin", '{"start": 0, "width": 2, "count": 1.5, "infinity": true}', "count is"),
        ("linear_bin", '{"start": 0, "width": 0, "count": 2, "infinity": true}', "each above"),
        ("linear_bin", '{"start": 1e308, "width": 1e308, "count": 2, "infinity": true}', "large"),
        ("log_bin", '{"start": 0, "factor": 2, "count": 2, "infinity": true}', "must not be 0"),
        ("log_bin", '{"start": 1, "factor": 1, "count": 2, "infinity": true}', "not 1"),
        ("log_bin", '{"start": 1, "factor": 1e300, "count": 9, "infinity": true}', "too large"),
    ],
)
def test_what_is_no_description_is_refused(kind: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bin_edges(kind, text)

"""The questions of `bench/select.py` are asked of the rows that it writes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl

from bench import select
from penstock.sql.parser import parse_one
from penstock.sql.statements import Query


def test_rows_are_those_of_the_file(tmp_path: Path) -> None:
    written = pl.concat(list(select.pieces(7, 3)))
    assert written.height == 7_000
    assert written.group_by("tbname").len()["len"].unique().to_list() == [7]
    held = pl.read_parquet(select.sorted_file(tmp_path, 7))
    assert held.equals(written.sort("tbname", "ts"))


def test_questions_can_be_asked(tmp_path: Path) -> None:
    con = duckdb.connect()
    con.execute(f"CREATE VIEW m AS FROM read_parquet('{select.sorted_file(tmp_path, 400)}')")
    answers = {}
    for question in select.questions(400):
        assert isinstance(parse_one(question.ours), Query)
        if question.theirs is not None:
            answers[question.name] = con.execute(question.theirs).fetchall()
    assert len(answers["range"]) == 360
    assert len(answers["chart"]) in (60, 61)
    assert len(answers["last_of_each"]) == 1_000

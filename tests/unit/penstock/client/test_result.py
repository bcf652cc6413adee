"""What other libraries read of a result, and what a notebook shows."""

from __future__ import annotations

import duckdb
import polars as pl
import pyarrow as pa

from penstock.client.result import Result

TABLE = pa.table({"a": [1, None, 3], "<b>": ["x", "<script>", None]})


def test_libraries_take_it_as_a_table() -> None:
    result = Result(TABLE)
    assert pa.table(result).equals(TABLE)
    assert pl.DataFrame(result).rows() == [(1, "x"), (None, "<script>"), (3, None)]
    with duckdb.connect() as con:
        assert con.sql("SELECT sum(a) FROM result").fetchall() == [(4,)]
    assert result.__dataframe__().num_rows() == 3


def test_a_notebook_shows_the_first_rows_as_text() -> None:
    shown = Result(TABLE)._repr_html_()
    assert shown == (
        '<table class="tex2jax_ignore mathjax_ignore"><thead>'
        "<tr><th>a</th><th>&lt;b&gt;</th></tr></thead><tbody>"
        "<tr><td>1</td><td>x</td></tr>"
        "<tr><td>NULL</td><td>&lt;script&gt;</td></tr>"
        "<tr><td>3</td><td>NULL</td></tr></tbody></table>"
    )
    many = Result(pa.table({"n": range(1_025)}))._repr_html_()
    assert many.count("<td>") == 20 and many.endswith("<p>and 1,005 more rows</p>")
    assert "more" not in Result(pa.table({"n": []}))._repr_html_()

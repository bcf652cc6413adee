"""Expressions by example: value, type and refusals."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from penstock.errors import SqlError, SqlSemanticError
from penstock.sql.compile import compile_expression
from penstock.sql.functions import AGGREGATES, REGISTRY
from penstock.types import ColumnType

COLUMNS = {
    "ts": ColumnType("TIMESTAMP"),
    "a": ColumnType("INT"),
    "b": ColumnType("BIGINT"),
    "u": ColumnType("BIGINT UNSIGNED"),
    "f": ColumnType("FLOAT"),
    "d": ColumnType("DOUBLE"),
    "s": ColumnType("VARCHAR", length=20),
    "n": ColumnType("NCHAR", length=10),
    "o": ColumnType("BOOL"),
    "j": ColumnType("JSON"),
    "v": ColumnType("VARBINARY", length=8),
    "tbname": ColumnType("VARCHAR", length=192),
    "Ab C": ColumnType("INT"),
    "m": ColumnType("DECIMAL", precision=10, scale=2),
}
FRAME = pl.DataFrame(
    {
        "ts": [1700006400123, None, 1582972200000],
        "a": [5, None, -3],
        "b": [2**40, 0, None],
        "u": [2**63 + 1, None, 3],
        "f": [1.5, None, -0.25],
        "d": [2.5, 0.0, None],
        "s": ["héllo,abc", None, "12x"],
        "n": ["你好", " x ", None],
        "o": [True, None, False],
        "j": ['{"k":1,"s":"x","b":true,"z":null}', None, '{"s":"y"}'],
        "v": [b"ab", None, b"\xff"],
        "tbname": ["d1", "d2", "d3"],
        "Ab C": [1, 2, 3],
        "m": ["1.25", None, "-2.00"],
        "_now": [1700000000000] * 3,
    },
    schema={
        **{k: (pl.String() if k == "m" else t.polars()) for k, t in COLUMNS.items()},
        "_now": pl.Int64(),
    },
).with_columns(pl.col("m").cast(pl.Decimal(10, 2)))


def run(sql: str, **options: Any) -> tuple[str, list[Any]]:
    compiled = compile_expression(sql, COLUMNS, **options)
    found = FRAME.with_columns(compiled.expr.alias("_x")).get_column("_x")
    assert found.dtype == compiled.type.polars(), sql
    return str(compiled.type), found.to_list()


T = True
F = False
N = None
VALUES: list[tuple[str, str, list[Any]]] = [
    # arithmetic is DOUBLE, x/0 and x%0 are NULL, the remainder has the sign of the left side
    ("a + b", "DOUBLE", [float(2**40 + 5), N, N]),
    ("a / 0", "DOUBLE", [N, N, N]),
    ("a % 2", "DOUBLE", [1.0, N, -1.0]),
    ("5 / 2", "DOUBLE", [2.5] * 3),
    ("-5", "INT", [-5] * 3),
    ("-a", "DOUBLE", [-5.0, N, 3.0]),
    ("9223372036854775807", "BIGINT", [2**63 - 1] * 3),
    ("18446744073709551615", "BIGINT UNSIGNED", [2**64 - 1] * 3),
    ("a & 6", "BIGINT", [4, N, 4]),
    ("a | 8", "BIGINT", [13, N, -3]),
    ("m * 2", "DOUBLE", [2.5, N, -4.0]),
    ("`ab c` + 1", "DOUBLE", [2.0, 3.0, 4.0]),
    # conditions are three-valued
    ("NOT o", "BOOL", [F, N, T]),
    ("o AND a > 1", "BOOL", [T, N, F]),
    ("o OR a > 1", "BOOL", [T, N, F]),
    ("NULL = a", "BOOL", [N, N, N]),
    ("a IS NULL", "BOOL", [F, T, F]),
    ("a IS NOT NULL AND a < 0", "BOOL", [F, F, T]),
    ("a IN (5, NULL)", "BOOL", [T, N, N]),
    ("a NOT IN (5, 6)", "BOOL", [F, N, T]),
    ("a IN (1,2,3,4,5,6,7,8,9,10)", "BOOL", [T, N, F]),
    ("s IN ('a','b','c','d','e','f','g','h','12x')", "BOOL", [F, N, T]),
    ("a BETWEEN -3 AND 4", "BOOL", [F, N, T]),
    ("a NOT BETWEEN -3 AND 4", "BOOL", [T, N, F]),
    # signed beside unsigned, numbers beside text, BOOL beside numbers and words
    ("u > a", "BOOL", [T, N, T]),
    ("u = 9223372036854775809", "BOOL", [T, N, F]),
    ("a = '5'", "BOOL", [T, N, F]),
    ("o = 1", "BOOL", [T, N, F]),
    ("o = 'true'", "BOOL", [T, N, F]),
    ("m < 0", "BOOL", [F, N, T]),
    ("v = 'ab'", "BOOL", [T, N, F]),
    # text
    ("s LIKE 'h_llo%'", "BOOL", [T, N, F]),
    ("s LIKE 'H%'", "BOOL", [F, N, F]),
    (r"'a_b' LIKE 'a\_b'", "BOOL", [T] * 3),
    (r"'axb' LIKE 'a\_b'", "BOOL", [F] * 3),
    ("s NOT LIKE '%c'", "BOOL", [F, N, T]),
    ("s MATCH '^[0-9]'", "BOOL", [F, N, T]),
    ("s NMATCH '^[0-9]'", "BOOL", [T, N, F]),
    # times
    ("ts > '2020-03-01'", "BOOL", [T, N, F]),
    ("ts = 1700006400123", "BOOL", [T, N, F]),
    ("ts = '2023-11-15T00:00:00.123Z'", "BOOL", [T, N, F]),
    ("now - 1h", "TIMESTAMP", [1699996400000] * 3),
    ("now() + 1n", "TIMESTAMP", [1702592000000] * 3),
    ("today()", "TIMESTAMP", [1699920000000] * 3),
    ("ts - 1d", "TIMESTAMP", [1699920000123, N, 1582885800000]),
    ("ts - ts", "BIGINT", [0, N, 0]),
    ("ts + 1y", "TIMESTAMP", [1731628800123, N, 1614508200000]),
    ("1h + 1m", "BIGINT", [3660000] * 3),
    # JSON tags
    ("j->'s' = 'x'", "BOOL", [T, N, F]),
    ("j->'k' = 1", "BOOL", [T, N, N]),
    ("j->'b' = true", "BOOL", [T, N, N]),
    ("j CONTAINS 'k'", "BOOL", [T, N, F]),
    ("j CONTAINS 'z'", "BOOL", [T, N, F]),
    ("cast(j->'k' AS INT) + 1", "DOUBLE", [2.0, N, N]),
    # choosing
    ("CASE a WHEN 5 THEN 'x' ELSE s END", "VARCHAR(20)", ["x", N, "12x"]),
    ("CASE WHEN a > 0 THEN 1 END", "INT", [1, N, N]),
    ("CASE WHEN a > 0 THEN 'p' ELSE 0 END", "VARCHAR(32)", ["p", "0", "0"]),
    ("if(a > 0, a, d)", "DOUBLE", [5.0, 0.0, N]),
    ("ifnull(a, 0)", "INT", [5, 0, -3]),
    ("nvl(s, tbname)", "VARCHAR(192)", ["héllo,abc", "d2", "12x"]),
    ("nvl2(a, 'x', 'yy')", "VARCHAR(2)", ["x", "yy", "x"]),
    ("coalesce(a, b, 1)", "BIGINT", [5, 0, -3]),
    ("nullif(a, 5)", "INT", [N, N, -3]),
    ("greatest(a, b)", "BIGINT", [2**40, N, N]),
    ("least(a, d, 3)", "DOUBLE", [2.5, N, N]),
    # mathematics
    ("abs(a)", "INT", [5, N, 3]),
    ("sqrt(a)", "DOUBLE", [pytest.approx(5**0.5), N, N]),
    ("ln(0)", "DOUBLE", [N] * 3),
    ("log(8, 2)", "DOUBLE", [3.0] * 3),
    ("pow(2, 10)", "DOUBLE", [1024.0] * 3),
    ("mod(a, 0)", "DOUBLE", [N] * 3),
    ("ceil(f)", "FLOAT", [2.0, N, -0.0]),
    ("floor(a)", "INT", [5, N, -3]),
    ("round(2.5)", "DOUBLE", [3.0] * 3),
    ("round(-2.5)", "DOUBLE", [-3.0] * 3),
    ("round(8888.88, -1)", "DOUBLE", [8890.0] * 3),
    ("round(a, -1)", "INT", [10, N, 0]),
    ("truncate(8888.88, -1)", "DOUBLE", [8880.0] * 3),
    ("truncate(-1.29, 1)", "DOUBLE", [-1.2] * 3),
    ("sign(d)", "DOUBLE", [1.0, 0.0, N]),
    ("degrees(pi())", "DOUBLE", [180.0] * 3),
    ("crc32('MySQL')", "INT UNSIGNED", [3259397556] * 3),
    ("crc32(s)", "INT UNSIGNED", [489778850, N, 1766259658]),
    # text functions
    ("ascii(s)", "BIGINT", [104, N, 49]),
    ("char(77 * 256 + 77)", "VARCHAR(4)", ["MM"] * 3),
    ("char(77, NULL, 77)", "VARCHAR(12)", ["MM"] * 3),
    ("char_length(n)", "BIGINT", [2, 3, N]),
    ("length(n)", "BIGINT", [6, 3, N]),
    ("length(v)", "BIGINT", [2, N, 1]),
    ("concat(s, '-', tbname)", "VARCHAR(213)", ["héllo,abc-d1", N, "12x-d3"]),
    ("concat(s, n)", "NCHAR(30)", ["héllo,abc你好", N, N]),
    ("concat_ws(',', 'a', tbname)", "VARCHAR(194)", ["a,d1", "a,d2", "a,d3"]),
    ("trim(n)", "NCHAR(10)", ["你好", "x", N]),
    ("trim(LEADING 'b' FROM 'bbba')", "VARCHAR(4)", ["a"] * 3),
    ("trim('ab' FROM 'abacd')", "VARCHAR(5)", ["acd"] * 3),
    ("substr(s, 2, 3)", "VARCHAR(20)", ["éll", N, "2x"]),
    ("substring('tdengine', -3, 3)", "VARCHAR(8)", ["ine"] * 3),
    ("substring('tdengine', -3, -3)", "VARCHAR(8)", [""] * 3),
    ("substring('tdengine' FROM 3 FOR 2)", "VARCHAR(8)", ["en"] * 3),
    ("substring('tdengine', 0)", "VARCHAR(8)", [""] * 3),
    ("substring_index('www.tdengine.com', '.', 2)", "VARCHAR(16)", ["www.tdengine"] * 3),
    ("substring_index('www.tdengine.com', '.', -2)", "VARCHAR(16)", ["tdengine.com"] * 3),
    ("position('l' IN s)", "BIGINT", [3, N, 0]),
    ("position('' IN 'cba')", "BIGINT", [1] * 3),
    ("replace('aabbccAABBCC', 'AA', 'DD')", "VARCHAR(14)", ["aabbccDDBBCC"] * 3),
    ("replace('d1d2', tbname, s)", "VARCHAR(24)", ["héllo,abcd2", N, "d1d2"]),
    ("length(repeat('abc', 1000000000))", "BIGINT", [65517] * 3),
    ("length(repeat(repeat(tbname, 60000), 60000))", "BIGINT", [65516] * 3),
    ("repeat(s, 0)", "VARCHAR(20)", ["", N, ""]),
    ("repeat(NULL, 2)", "VARCHAR(2)", [N] * 3),
    ("length(replace(repeat('a', 60000), 'a', repeat('b', 60000)))", "BIGINT", [N] * 3),
    ("length(replace(repeat('d', 60000), substr(tbname, 1, 1), 'ee'))", "BIGINT", [N] * 3),
    ("length(replace(repeat('d', 60000), substr(tbname, 1, 1), 'e'))", "BIGINT", [60000] * 3),
    ("length(replace(repeat('a', 60000), 'a', 'bb'))", "BIGINT", [N] * 3),
    ("length(replace(repeat('aa', 30000), 'aa', 'b'))", "BIGINT", [30000] * 3),
    (
        "length(" + "concat(" * 9 + "repeat(tbname, 60000)" + ", repeat(tbname, 60000))" * 9 + ")",
        "BIGINT",
        [65517] * 3,
    ),
    (
        "length("
        + "concat_ws(','," * 9
        + "repeat(tbname, 60000)"
        + ", repeat(tbname, 60000))" * 9
        + ")",
        "BIGINT",
        [65517] * 3,
    ),
    ("repeat('abc', -1)", "VARCHAR(3)", [""] * 3),
    ("repeat(tbname, `Ab C`)", "VARCHAR(4096)", ["d1", "d2d2", "d3d3d3"]),
    ("find_in_set('abc', s)", "BIGINT", [2, N, 0]),
    ("find_in_set(tbname, 'd9,d2')", "BIGINT", [0, 2, 0]),
    ("find_in_set('b', 'a;b', ';')", "BIGINT", [2] * 3),
    ("like_in_set('a%', s)", "BIGINT", [2, N, 0]),
    ("regexp_in_set('^a', s)", "BIGINT", [2, N, 0]),
    # conversions
    ("cast(d AS VARCHAR(20))", "VARCHAR(20)", ["2.500000", "0.000000", N]),
    ("cast(s AS INT)", "INT", [0, N, 12]),
    ("cast(s AS VARCHAR(2))", "VARCHAR(2)", ["h", N, "12"]),
    ("cast(s AS NCHAR(2))", "NCHAR(2)", ["hé", N, "12"]),
    ("cast(-1 AS TINYINT UNSIGNED)", "TINYINT UNSIGNED", [255] * 3),
    ("cast(300 AS TINYINT)", "TINYINT", [44] * 3),
    ("cast(-2.9 AS INT)", "INT", [-2] * 3),
    ("cast('2020-01-01' AS TIMESTAMP)", "TIMESTAMP", [1577836800000] * 3),
    ("'1970-01-01 00:00:01' + 1s", "TIMESTAMP", [2_000] * 3),
    ("cast(o AS VARCHAR(5))", "VARCHAR(5)", ["true", N, "false"]),
    ("cast('TRUE' AS BOOL)", "BOOL", [T] * 3),
    ("cast(s AS VARBINARY(3))", "VARBINARY(3)", [b"h\xc3\xa9", N, b"12x"]),
    (
        "to_char(ts, 'YYYY-MM-DD HH24:MI:SS.MS')",
        "VARCHAR(256)",
        ["2023-11-15 00:00:00.123", N, "2020-02-29 10:30:00.000"],
    ),
    (
        "to_char(ts, 'Mon DD, yy hh12 AM \"at\"')",
        "VARCHAR(256)",
        ["Nov 15, 23 12 AM at", N, "Feb 29, 20 10 AM at"],
    ),
    (
        "to_iso8601(ts, '+08:00')",
        "VARCHAR(64)",
        ["2023-11-15T08:00:00.123+08:00", N, "2020-02-29T18:30:00.000+08:00"],
    ),
    (
        "to_timestamp('2023-10-10 10:10:10.123', 'yyyy-mm-dd hh24:mi:ss.ms')",
        "TIMESTAMP",
        [1696932610123] * 3,
    ),
    (
        "to_timestamp('10 October 2023 1PM', 'DD Month YYYY HH12AM')",
        "TIMESTAMP",
        [1696942800000] * 3,
    ),
    ("to_unixtimestamp('2020-01-01T00:00:00+08:00')", "BIGINT", [1577808000000] * 3),
    ("to_unixtimestamp('nonsense', 1)", "TIMESTAMP", [N] * 3),
    ("to_json('{\"a\":1}')->'a' = 1", "BOOL", [T] * 3),
    # calendar
    ("date(ts)", "VARCHAR(10)", ["2023-11-15", N, "2020-02-29"]),
    ("dayofweek('2000-01-01')", "BIGINT", [7] * 3),
    ("weekday('2000-01-01')", "BIGINT", [5] * 3),
    ("weekofyear('2000-01-01')", "BIGINT", [52] * 3),
    ("timediff('2022-01-01 08:00:00', '2022-01-01 08:00:01', 1s)", "BIGINT", [-1] * 3),
    ("timediff(ts, '2020-02-29 10:30:00', 1d)", "BIGINT", [1354, N, 0]),
    ("timetruncate(ts, 1h)", "TIMESTAMP", [1700006400000, N, 1582970400000]),
    ("timetruncate(ts, 1w)", "TIMESTAMP", [1699488000000, N, 1582761600000]),
    ("timezone()", "VARCHAR(64)", ["UTC"] * 3),
]


@pytest.mark.parametrize(("sql", "kind", "values"), VALUES, ids=[v[0] for v in VALUES])
def test_value(sql: str, kind: str, values: list[Any]) -> None:
    assert run(sql) == (kind, values)


@pytest.mark.parametrize(("sql", "kind", "values"), VALUES, ids=[v[0] for v in VALUES])
def test_a_row_alone_has_the_same_value(sql: str, kind: str, values: list[Any]) -> None:
    """polars goes other ways for a frame of one row."""
    expr = compile_expression(sql, COLUMNS).expr
    found = [
        FRAME[i : i + 1].with_columns(expr.alias("_x")).get_column("_x")[0]
        for i in range(FRAME.height)
    ]
    assert found == values


@pytest.mark.parametrize(
    ("mode", "wanted"), list(enumerate([0, 0, 52, 52, 0, 0, 52, 52])), ids=lambda v: str(v)
)
def test_week_modes(mode: int, wanted: int) -> None:
    """2000-01-01 was a Saturday; the values are MySQL's."""
    assert run(f"week('2000-01-01', {mode})")[1] == [wanted] * 3


def test_weekofyear_is_iso() -> None:
    days = pl.Series("ts", range(1577000000000, 1740000000000, 86_400_000), dtype=pl.Int64)
    frame = days.to_frame().with_columns(iso=days.cast(pl.Datetime("ms")).dt.week().cast(pl.Int64))
    compiled = compile_expression("week(ts, 3)", {"ts": ColumnType("TIMESTAMP")})
    assert frame.select(compiled.expr.alias("w"))["w"].to_list() == frame["iso"].to_list()


def test_time_zone_and_precision() -> None:
    assert run("today()", timezone="Asia/Shanghai")[1] == [1699977600000] * 3
    assert run("timetruncate(ts, 1d)", timezone="Asia/Shanghai")[1] == [
        1699977600000,
        None,
        1582905600000,
    ]
    assert run("ts < '2020-02-29 18:30:00.001'", timezone="Asia/Shanghai")[1] == [False, None, True]
    assert (
        run("cast('2020-01-01 00:00:00.123456' AS TIMESTAMP)", precision="us")[1]
        == [1577836800123456] * 3
    )
    assert run("now - 1s", precision="us")[1] == [1699999000000] * 3
    assert (
        run("'2020-01-01 00:00:00' = cast(1577836800000000000 AS TIMESTAMP)", precision="ns")[1]
        == [True] * 3
    )


def test_empty_frame_and_constants() -> None:
    for sql in ("1", "concat('a', 'b')", "a + 1", "crc32('x')", "like_in_set('a', 'b,a')"):
        compiled = compile_expression(sql, COLUMNS)
        assert FRAME.clear().with_columns(compiled.expr.alias("_x")).get_column("_x").len() == 0


REFUSED: list[tuple[str, str, str]] = [
    ("nosuch + 1", "E_UNKNOWN_COLUMN", "nosuch"),
    ("tbnam = 'd1'", "E_UNKNOWN_COLUMN", "did you mean tbname?"),
    ("sume(a)", "E_UNKNOWN_FUNCTION", "did you mean sum()?"),
    ("sum(a)", "E_AGGREGATE_HERE", "aggregate"),
    ("twa(a)", "E_FORBIDDEN_FUNC", "avg(x)"),
    ("rand()", "E_FORBIDDEN_FUNC", "another result"),
    ("a + s", "E_TYPE", "VARCHAR(20) and DOUBLE"),
    ("ts > 'abc'", "E_TYPE", "TIMESTAMP and VARCHAR(3)"),
    ("a > 'abc'", "E_TYPE", "INT and VARCHAR(3)"),
    ("o = 'abc'", "E_TYPE", "BOOL and VARCHAR(3)"),
    ("ts + ts", "E_TYPE", "two times"),
    ("abs(s)", "E_TYPE", "VARCHAR(20)"),
    ("concat(s, a)", "E_TYPE", "INT"),
    ("s AND o", "E_TYPE", "VARCHAR(20)"),
    ("s LIKE tbname", "E_PATTERN", "constant"),
    ("s MATCH '('", "E_PATTERN", "regular expression"),
    ("a LIKE '1%'", "E_TYPE", "INT"),
    ("a -> 'k'", "E_TYPE", "JSON"),
    ("'soon' - 1s", "E_TYPE", "'soon' is no time"),
    ("1s - '1970-01-01'", "E_TYPE", "cannot be subtracted from a duration"),
    ("cast(j AS VARBINARY(3))", "E_TYPE", "JSON and VARBINARY(3)"),
    ("abs()", "E_FUNCTION_ARGUMENT", "abs(number)"),
    ("abs(a, 1)", "E_FUNCTION_ARGUMENT", "takes 1 arguments"),
    ("timetruncate(ts, 2d)", "E_FUNCTION_ARGUMENT", "1d"),
    ("timetruncate(ts, 1u)", "E_FUNCTION_ARGUMENT", "finer"),
    ("week(ts, 9)", "E_FUNCTION_ARGUMENT", "0 to 7"),
    ("1n * 2", "E_TYPE", "fixed length"),
    ("a IN (SELECT a FROM x)", "E_UNSUPPORTED_EXPRESSION", "list of values"),
]


@pytest.mark.parametrize(("sql", "code", "says"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refusal(sql: str, code: str, says: str) -> None:
    with pytest.raises(SqlSemanticError) as caught:
        compile_expression(sql, COLUMNS)
    error = caught.value
    assert error.code == code
    assert says in str(error)
    assert error.line == 1 and error.column >= 1 and "^" in error.snippet


def test_place_of_an_error() -> None:
    with pytest.raises(SqlError) as caught:
        compile_expression("a > 1 AND\n  nosuch = 2", COLUMNS)
    assert (caught.value.line, caught.value.column) == (2, 3)


def test_every_function_is_documented() -> None:
    for function in REGISTRY.values():
        assert function.doc.endswith("."), function.name
        assert function.signature.startswith(f"{function.name}(")
        least, most = function.arity
        assert 0 <= least <= most
    for aggregate in AGGREGATES.values():
        assert aggregate.doc.endswith(".") and aggregate.signature.startswith(f"{aggregate.name}(")


def test_scalars_of_the_reference_are_there() -> None:
    wanted = (
        "abs acos asin atan ceil cos floor greatest least ln log mod pow radians degrees round sign sin sqrt tan truncate exp crc32 pi "
        "ascii char char_length concat concat_ws find_in_set length like_in_set regexp_in_set lower ltrim position repeat replace rtrim "
        "substr substring_index trim upper to_char to_iso8601 to_json to_timestamp to_unixtimestamp date day dayofweek now timediff "
        "timetruncate timezone today week weekday weekofyear if ifnull nullif nvl nvl2 coalesce"
    )
    assert [name for name in wanted.split() if name not in REGISTRY] == []

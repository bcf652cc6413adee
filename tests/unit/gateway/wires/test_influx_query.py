"""InfluxQL over HTTP. The expected rows are worked out by hand from the points below."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.gateway.wires.kit import Wires, key

#: 2024-01-01
T0 = 1_704_067_200
POINTS = """\
cpu,host=a,zone=x usage=1,n=10i,note="one" 1704067201
cpu,host=a,zone=x usage=3 1704067215
cpu,host=a,zone=x usage=8,n=20i 1704067241
cpu,host=b usage=5,n=7i,note="two" 1704067203
mem,host=a free=4i 1704067200
"""


@pytest.fixture
async def full(wires: Wires) -> Wires:
    status, said = await wires.post("/write", POINTS, db="d", precision="s")
    assert status == 204, said
    return wires


# ---------------------------------------------------------------- databases


async def test_telegraf_and_tsbs_make_their_database(wires: Wires) -> None:
    form = {"q": 'CREATE DATABASE "telegraf"'}
    assert await wires.post("/query", form) == (200, {"results": [{"statement_id": 0}]})
    assert await wires.ask("CREATE DATABASE benchmark WITH REPLICATION 1") == [[]]
    assert await wires.ask("show databases") == [
        [{"name": "databases", "columns": ["name"], "values": [["benchmark"], ["d"], ["telegraf"]]}]
    ]
    assert await wires.ask("DROP DATABASE benchmark; SHOW DATABASES") == [
        [],
        [{"name": "databases", "columns": ["name"], "values": [["d"], ["telegraf"]]}],
    ]
    assert await wires.ask("DROP DATABASE benchmark") == [[]]


async def test_a_duration_is_kept_by_whole_days(wires: Wires) -> None:
    await wires.ask('CREATE DATABASE k WITH DURATION 25h REPLICATION 3 NAME "mine"')
    ((series,),) = await wires.ask("SHOW RETENTION POLICIES ON k")
    assert series["values"] == [["autogen", "48h0m0s", "168h0m0s", 1, True]]
    ((series,),) = await wires.ask("SHOW RETENTION POLICIES")
    assert series["values"] == [["autogen", "0s", "168h0m0s", 1, True]]


async def test_what_is_missing_is_told_in_the_words_that_clients_look_for(wires: Wires) -> None:
    assert (await wires.ask("SHOW MEASUREMENTS", db="no"))[0].startswith('database not found: "no"')
    status, said = await wires.post("/write", "m v=1", db="no")
    assert (status, said["error"].startswith('database not found: "no"')) == (404, True)
    assert await wires.ask("SELECT v FROM m", db="") == ["database name required (?db=…)"]
    assert await wires.ask("SELECT v FROM nothing") == [[]]


NO_NAMES = ["a`; DROP DATABASE d", "x.y", "a-b", "'", "`", 'q\\"q']


async def test_names_that_are_none_make_nothing(wires: Wires) -> None:
    for name in NO_NAMES:
        before = [d.name for d in wires.gateway.catalog.databases()]
        for word in ("CREATE", "DROP"):
            (said,) = await wires.ask(f'{word} DATABASE "{name}"')
            assert "cannot be a database's name" in said
        assert [d.name for d in wires.gateway.catalog.databases()] == before


# ---------------------------------------------------------------- lists


async def test_lists_of_measurements_tags_and_fields(full: Wires) -> None:
    assert await full.ask("SHOW MEASUREMENTS") == [
        [{"name": "measurements", "columns": ["name"], "values": [["cpu"], ["mem"]]}]
    ]
    assert await full.ask("SHOW MEASUREMENTS WITH MEASUREMENT =~ /^c.*/ LIMIT 100") == [
        [{"name": "measurements", "columns": ["name"], "values": [["cpu"]]}]
    ]
    assert await full.ask('SHOW TAG KEYS ON d FROM "cpu"; SHOW FIELD KEYS') == [
        [{"name": "cpu", "columns": ["tagKey"], "values": [["host"], ["zone"]]}],
        [
            {
                "name": "cpu",
                "columns": ["fieldKey", "fieldType"],
                "values": [["n", "integer"], ["note", "string"], ["usage", "float"]],
            },
            {"name": "mem", "columns": ["fieldKey", "fieldType"], "values": [["free", "integer"]]},
        ],
    ]
    assert await full.ask('SHOW TAG VALUES FROM cpu WITH KEY IN ("host", zone)') == [
        [
            {
                "name": "cpu",
                "columns": ["key", "value"],
                "values": [["host", "a"], ["host", "b"], ["zone", "x"]],
            }
        ]
    ]
    assert await full.ask("SHOW TAG KEYS FROM nothing; SHOW MEASUREMENTS OFFSET 5") == [[], []]


SLOW_PATTERNS = ["(a+)+$", ".*.*.*x", "[", "a{1000}", "x" * 300]


async def test_patterns_that_could_take_long_are_refused(full: Wires) -> None:
    for pattern in SLOW_PATTERNS:
        (said,) = await full.ask(f"SHOW MEASUREMENTS WITH MEASUREMENT =~ /{pattern}/")
        assert "not supported" in said


# ---------------------------------------------------------------- rows


SELECTS: list[tuple[str, list[list[Any]]]] = [
    ("SELECT usage FROM cpu", [[1, 1.0], [3, 5.0], [15, 3.0], [41, 8.0]]),
    ("SELECT usage FROM cpu ORDER BY time DESC LIMIT 2", [[41, 8.0], [15, 3.0]]),
    ("SELECT usage FROM cpu LIMIT 1 OFFSET 1", [[3, 5.0]]),
    ("SELECT n FROM cpu", [[1, 10], [3, 7], [41, 20]]),
    ("SELECT time, n AS m, host FROM cpu", [[1, 10, "a"], [3, 7, "b"], [41, 20, "a"]]),
    ("SELECT usage, nothing FROM cpu WHERE zone = ''", [[3, 5.0, None]]),
    (
        "SELECT * FROM cpu WHERE n < 20",
        [[1, "a", 10, "one", 1.0, "x"], [3, "b", 7, "two", 5.0, None]],
    ),
    ("SELECT usage FROM cpu WHERE host = 'a' AND usage > 1", [[15, 3.0], [41, 8.0]]),
    ("SELECT usage FROM cpu WHERE host = 'b' OR (n > 10 AND usage >= 8)", [[3, 5.0], [41, 8.0]]),
    ("SELECT usage FROM cpu WHERE zone != 'x'", [[3, 5.0]]),
    ("SELECT usage FROM cpu WHERE zone <> ''", [[1, 1.0], [15, 3.0], [41, 8.0]]),
    ("SELECT usage FROM cpu WHERE host =~ /^(b|c)$/", [[3, 5.0]]),
    ("SELECT usage FROM cpu WHERE zone !~ /x/", [[3, 5.0]]),
    ("SELECT n FROM cpu WHERE zone =~ /.*/", [[1, 10], [3, 7], [41, 20]]),
    ("SELECT usage FROM cpu WHERE note = 'one'", [[1, 1.0]]),
    ("SELECT n FROM cpu WHERE ghost = ''", [[1, 10], [3, 7], [41, 20]]),
    ("SELECT n FROM cpu WHERE ghost != 'x' AND n = 7", [[3, 7]]),
    (
        "SELECT usage FROM cpu WHERE time >= '2024-01-01T00:00:03Z' AND time < 1704067241s",
        [[3, 5.0], [15, 3.0]],
    ),
    ("SELECT usage FROM cpu WHERE time > '2024-01-01 00:00:15'", [[41, 8.0]]),
    ("SELECT usage FROM cpu WHERE time = 1704067215000000000", [[15, 3.0]]),
    (
        "SELECT usage FROM cpu WHERE time > 1704067215000ms - 1s AND time <= 1704067215s",
        [[15, 3.0]],
    ),
    ('SELECT "usage"::field FROM "d"."autogen"."cpu" WHERE "usage" = 8', [[41, 8.0]]),
    ("SELECT usage FROM d..cpu WHERE usage = 8", [[41, 8.0]]),
    ("SELECT usage FROM cpu WHERE n = 7" + " OR n = 1" * 198, [[3, 5.0]]),
    (f"SELECT usage FROM cpu WHERE {'(' * 50}n = 7{' AND n > 1)' * 50}", [[3, 5.0]]),
    # ---- aggregates: at the beginning of time, or at a selector's row
    ("SELECT mean(usage), count(n), sum(n) FROM cpu", [[-T0, 4.25, 3, 37]]),
    ("SELECT max(usage) FROM cpu", [[41, 8.0]]),
    ("SELECT first(n) FROM cpu WHERE host = 'a'", [[1, 10]]),
    ("SELECT last(note) FROM cpu", [[3, "two"]]),
    ("SELECT min(usage), max(usage) FROM cpu WHERE time >= 1704067202s", [[2, 3.0, 8.0]]),
    ("SELECT mean(usage), mean(n) FROM cpu WHERE host = 'b'", [[-T0, 5.0, 7.0]]),
    ("SELECT count(*) FROM cpu", [[-T0, 3, 2, 4]]),
    ("SELECT mean(*) FROM cpu WHERE host = 'b'", [[-T0, 7.0, 5.0]]),
    ("SELECT sum(usage), sum(ghost) FROM cpu", [[-T0, 17.0, None]]),
    # ---- windows
    (
        "SELECT sum(usage) FROM cpu WHERE time < 1704067250s GROUP BY time(10s)",
        [[0, 6.0], [10, 3.0], [20, None], [30, None], [40, 8.0]],
    ),
    (
        "SELECT count(n), mean(n) FROM cpu WHERE time >= 1704067190s AND time < 1704067230s"
        " GROUP BY time(10s)",
        [[-10, 0, None], [0, 2, 8.5], [10, 0, None], [20, 0, None]],
    ),
    (
        "SELECT sum(usage) FROM cpu GROUP BY time(10s) fill(none)",
        [[0, 6.0], [10, 3.0], [40, 8.0]],
    ),
    (
        "SELECT sum(usage), count(n) FROM cpu WHERE time >= 1704067200s AND time <= 1704067240s"
        " GROUP BY time(10s) fill(0)",
        [[0, 6.0, 2], [10, 3.0, 0], [20, 0, 0], [30, 0, 0], [40, 0, 0]],
    ),
    (
        "SELECT last(usage) FROM cpu WHERE time >= 1704067190s AND time < 1704067230s"
        " GROUP BY time(10s) fill(previous) ORDER BY time DESC",
        [[20, 3.0], [10, 3.0], [0, 5.0], [-10, None]],
    ),
    (
        "SELECT sum(usage) FROM cpu WHERE time < 1704067250s GROUP BY time(10s, 5s) LIMIT 2",
        [[-5, 6.0], [5, None]],
    ),
    (
        "SELECT sum(usage) FROM cpu WHERE time < 1704067250s GROUP BY time(1w) ",
        [[-4 * 86_400, 17.0]],  # 2024-01-01 is a Monday, 1970-01-01 was a Thursday
    ),
]


async def test_rows_of_a_select(full: Wires) -> None:
    for query, rows in SELECTS:
        assert [[t - T0, *rest] for t, *rest in await full.rows(query)] == rows, query


async def test_series_of_tags(full: Wires) -> None:
    query = "SELECT mean(usage) AS m, mean(n) FROM cpu WHERE time < 1704067220s GROUP BY time(10s), host"
    (series,) = await full.ask(f"{query} fill(-1)")
    assert [(s["name"], s["tags"], s["columns"]) for s in series] == [
        ("cpu", {"host": "a"}, ["time", "m", "mean"]),
        ("cpu", {"host": "b"}, ["time", "m", "mean"]),
    ]
    assert [s["values"] for s in series] == [
        [[T0, 1.0, 10.0], [T0 + 10, 3.0, -1]],
        [[T0, 5.0, 7.0], [T0 + 10, -1, -1]],
    ]
    (series,) = await full.ask("SELECT last(usage) FROM cpu GROUP BY *")
    assert [(s["tags"], s["values"]) for s in series] == [
        ({"host": "a", "zone": "x"}, [[T0 + 41, 8.0]]),
        ({"host": "b", "zone": ""}, [[T0 + 3, 5.0]]),
    ]
    (series,) = await full.ask("SELECT * FROM cpu GROUP BY host, ghost LIMIT 1 SLIMIT 1 SOFFSET 1")
    assert series == [
        {
            "name": "cpu",
            "tags": {"host": "b", "ghost": ""},
            "columns": ["time", "n", "note", "usage", "zone"],
            "values": [[T0 + 3, 7, "two", 5.0, None]],
        }
    ]
    (series,) = await full.ask("SELECT mean(free), mean(usage), mean(free) FROM cpu, mem")
    assert [(s["name"], s["columns"]) for s in series] == [
        ("cpu", ["time", "mean", "mean_1", "mean_2"]),
        ("mem", ["time", "mean", "mean_1", "mean_2"]),
    ]


async def test_forms_of_times(full: Wires) -> None:
    async def time_of(epoch: str) -> Any:
        ((series,),) = await full.ask("SELECT free FROM mem", epoch=epoch)
        return series["values"][0][0]

    assert await time_of("") == "2024-01-01T00:00:00Z"
    assert await time_of("ns") == T0 * 10**9 and await time_of("h") == T0 // 3600
    await full.post("/write", "f v=1 1704067200250", db="d", precision="ms")
    ((series,),) = await full.ask("SELECT v FROM f", epoch="")
    assert series["values"] == [["2024-01-01T00:00:00.25Z", 1.0]]


async def test_windows_without_an_end_reach_to_now(full: Wires) -> None:
    rows = await full.rows("SELECT sum(free) FROM mem GROUP BY time(1000d)")
    # the clock of the test stands at 2027-01-15
    assert [row[1] for row in rows] == [4, None]
    status, said = await full.get(
        "/query", q="SELECT sum(free) FROM mem GROUP BY time(10ms)", db="d"
    )
    assert status == 413 and "windows" in said["error"]


# ---------------------------------------------------------------- refusals


UNREADABLE = [
    ("SELEC usage FROM cpu", "error parsing query: found SELEC, expected SELECT, SHOW, CREATE"),
    ("SELECT usage FROM cpu WHERE", "found EOF, expected identifier at line 1, char 28"),
    ("SELECT usage FROM cpu WHERE host", "expected a comparison"),
    ("SELECT usage FROM cpu WHERE time > 'noon'", "expected a time"),
    ("SELECT usage FROM cpu\nLIMIT -1", "found -, expected integer at line 2, char 7"),
    ("SELECT usage FROM cpu \x00", "expected another token"),
    ("SELECT derivative(usage) FROM cpu", "derivative() is not supported"),
    ("SELECT usage * 2 FROM cpu", "arithmetic"),
    ("SELECT usage INTO x FROM cpu", "INTO is not supported"),
    ("SELECT usage FROM (SELECT * FROM cpu)", "a SELECT in FROM"),
    ("SELECT usage FROM /c.*/", "regular expression in FROM"),
    ("SELECT usage FROM cpu tz('UTC')", "tz() is not supported"),
    ("SELECT usage FROM cpu GROUP BY time(0s)", "a duration above 0"),
    ("SELECT sum(n) FROM cpu GROUP BY time(1m), host, time(1h)", "a second time() in GROUP BY"),
    ("SELECT usage FROM cpu ORDER BY host", "ORDER BY of anything but time"),
    ("SELECT usage FROM cpu WHERE " + "(" * 60, "fewer brackets"),
    ("SELECT usage FROM cpu WHERE n = 1" + " OR n = 1" * 200, "at most 200 comparisons"),
    ("CREATE RETENTION POLICY p ON d", "CREATE RETENTION is not supported"),
    ("DROP MEASUREMENT cpu", "DROP MEASUREMENT is not supported"),
    (";", "found EOF"),
    ("SHOW DATABASES SHOW DATABASES", "found SHOW, expected ;, EOF"),
    ("SHOW DATABASES;" * 52, "more than 50 statements"),
    ("SELECT usage FROM cpu" + ", cpu" * 20, "at most 20 in a list"),
    ("SELECT usage" + ", n" * 500 + " FROM cpu", "at most 500 in a list"),
    ("SELECT n FROM cpu GROUP BY host" + ", host" * 500, "at most 500 in a list"),
    ("SHOW TAG VALUES WITH KEY IN (a" + ", a" * 20, "at most 20 in a list"),
]


async def test_what_cannot_be_read(full: Wires) -> None:
    for query, words in UNREADABLE:
        status, said = await full.get("/query", q=query, db="d")
        assert status == 400 and words in said["error"], query


UNANSWERABLE = [
    ("SELECT usage, mean(n) FROM cpu", "mixing aggregate and non-aggregate"),
    ("SELECT *" + ", *" * 499 + " FROM wide", "more than 4096 columns"),
    ("SELECT usage FROM cpu GROUP BY time(1m)", "at least one aggregate function"),
    ("SELECT usage FROM cpu WHERE host = 'a' OR time > 0", "time in an OR"),
    ("SELECT usage FROM cpu WHERE time != 0", "time != is not supported"),
    ("SELECT usage FROM cpu WHERE host = 'a' AND usage =~ 'a'", "found ', expected regex"),
    ("SELECT mean(note) FROM cpu", "avg() needs a number"),
    ("SELECT usage FROM cpu WHERE host =~ /(/", "regular expression cannot be read"),
    ("SELECT sum(usage) FROM cpu GROUP BY time(1ms)", "too short"),
    (f"SELECT sum(n) FROM cpu WHERE time > -{10**39} GROUP BY time(1d)", "windows"),
    (f"SELECT sum(n) FROM cpu WHERE time > {10**41} GROUP BY time(1d)", "expected number"),
]


async def test_what_cannot_be_answered(full: Wires) -> None:
    fields = ",".join(f"f{i}=1" for i in range(100))
    assert (await full.post("/write", f"wide {fields} 1", db="d"))[0] == 204
    for query, words in UNANSWERABLE:
        _, said = await full.get("/query", q=f"{query}; SHOW DATABASES", db="d")
        if "error" in said:
            assert words in said["error"], query
        else:
            first, second = said["results"]
            assert words in first["error"] and second["error"] == "not executed", query


async def test_parameters_of_the_request(full: Wires) -> None:
    assert (await full.get("/query"))[0] == 400
    assert (await full.get("/query", q="SHOW DATABASES", epoch="fortnight"))[0] == 400
    form = {"Content-Type": "application/x-www-form-urlencoded", **key()}
    assert (await full.post("/query", b"q=%ff\xff", form))[0] == 400
    assert (await full.post("/query", b"a=1&" * 100, form))[0] == 400
    status, said = await full.post("/influxdb/v1/query", b"db=d", form, q="SHOW MEASUREMENTS")
    assert status == 200 and said["results"][0]["series"][0]["values"] == [["cpu"], ["mem"]]
    for condition in (f"n = {10**39}", f"time > {10**39}", f"time < -{10**39}"):
        assert await full.ask(f"SELECT usage FROM cpu WHERE {condition}") == [[]]
    assert (await full.get("/query", q="x" * 70_000))[0] in (400, 413)


# ---------------------------------------------------------------- hostile words


HOSTILE = ["`", "``", "'", "\\\\", "x` FROM d.mem --", "?", ":a", "*/", "\n", "ü", "$1"]


async def test_words_of_users_stay_words(full: Wires) -> None:
    for word in HOSTILE:
        quoted = word.replace('"', '\\"')
        text = word.replace("'", "\\'")
        for query in (
            f'SELECT "{quoted}" FROM cpu',
            f'SELECT usage FROM "{quoted}"',
            f"SELECT usage FROM cpu WHERE host = '{text}'",
            f"SELECT usage FROM cpu WHERE \"{quoted}\" = 'x'",
            f'SHOW TAG VALUES FROM cpu WITH KEY = "{quoted}"',
            f'SELECT mean("{quoted}") FROM cpu GROUP BY time(1d)',
        ):
            assert await full.ask(query) == [[]], query
        ((series,),) = await full.ask(
            f'SELECT usage AS "{quoted}" FROM cpu GROUP BY "{quoted}" LIMIT 1'
        )
        assert series["values"] == [[T0 + 1, 1.0]]


async def test_columns_with_odd_names_can_be_asked(wires: Wires) -> None:
    assert (await wires.post("/write", "o`dd,t`g=a f`1=1 1", db="d", precision="s"))[0] == 204
    ((series,),) = await wires.ask(
        'SELECT max("f`1") FROM "o`dd" WHERE "t`g" = \'a\' GROUP BY "t`g"'
    )
    assert series["values"] == [[1, 1.0]] and series["tags"] == {"t`g": "a"}


# ---------------------------------------------------------------- bound values


async def test_values_are_bound_and_never_read_as_a_query(full: Wires) -> None:
    async def bound(where: str, **values: Any) -> Any:
        params = json.dumps(values)
        (found,) = await full.ask(f"SELECT usage FROM cpu WHERE {where}", params=params)
        return [v for _, v in found[0]["values"]] if isinstance(found, list) and found else found

    assert await bound("host = $host AND usage > $least", host="a", least=1) == [3.0, 8.0]
    assert await bound('host = $"the host" AND usage >= $n', **{"the host": "b", "n": -0.5}) == [
        5.0
    ]
    assert await bound("host =~ $r", r={"regex": "^b"}) == [5.0]
    assert await bound("time >= $t + $d", t="2024-01-01T00:00:00Z", d={"duration": "30s"}) == [8.0]
    assert await bound("time >= $t", t=T0 * 10**9 + 41 * 10**9) == [8.0]
    assert await bound("$column = 3", column={"identifier": "usage"}) == [3.0]
    assert await bound("host = $host", host="a' OR host = 'b") == []
    assert await bound("host = $host", host='a"; DROP DATABASE d') == []


@pytest.mark.parametrize(
    ("where", "params", "words"),
    [
        ("host = $host", '{"hosts": "a"}', "missing parameter: host"),
        ("host =~ $r", '{"r": "a"}', "expected regex"),
        ("host = $r", '{"r": {"regex": "a"}}', "expected a value"),
        ("$column = 3", '{"column": "usage"}', "expected identifier"),
    ],
)
async def test_values_that_do_not_fit_are_refused(
    wires: Wires, where: str, params: str, words: str
) -> None:
    sql = f"SELECT usage FROM cpu WHERE {where}"
    status, said = await wires.get("/query", q=sql, db="d", params=params)
    assert status == 400 and words in said["error"]


ODD_PARAMETERS = [
    *("[1]", "{", "1", '{"a": null}', '{"a": [1]}', '{"a": NaN}', '{"a": 1e400}'),
    *('{"a": {}}', '{"a": {"string": "x", "int": 1}}', '{"a": {"sql": "x"}}'),
    *('{"a": {"int": 1.5}}', '{"a": {"duration": "x"}}', '{"a": {"duration": true}}'),
    *("[" * 100_000, '{"a": "' + "x" * 70_000 + '"}'),
]


@pytest.mark.parametrize("params", ODD_PARAMETERS, ids=range(len(ODD_PARAMETERS)))
async def test_parameters_that_are_none_are_refused(wires: Wires, params: str) -> None:
    status, said = await wires.post(
        "/query", {"q": "SELECT v FROM m WHERE a = $a"} | {"params": params}
    )
    assert status in (400, 413) and said["error"]

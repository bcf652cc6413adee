"""The console's pure modules, in the browser that will run them; no mesh."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from gateway.answers import TYPE_KEY, to_arrow, to_tdengine
from gateway.console.static_files import packaged
from tests.console.conftest import Visit

#: evaluates a text in a module's names and `load`, and gives what JSON can hold
_CALL = """async ([base, module, code]) => {
    const names = { ...await import(base + module), load: (path) => import(base + path) };
    return new Function(...Object.keys(names), `return ${code}`)(...Object.values(names));
}"""
Call = Callable[[str, str], Any]
FORM = "pages/tables/insert_text.js"


@pytest.fixture
def call(browser: Any, files_url: str) -> Any:
    """Return what evaluates code with a module's names, on an empty page of the same origin."""
    # the page's own policy forbids to evaluate a text, so the driver goes around it
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(f"{files_url}/console/{packaged().version}/vendor/LICENSES.txt")
    base = f"{files_url}/console/{packaged().version}/app/"
    yield lambda module, code: page.evaluate(_CALL, [base, module, code])
    context.close()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[1, -2.5, 1e3]", "1,-2.5,1000"),
        ("[9223372036854775807, -9223372036854775808]", "9223372036854775807,-9223372036854775808"),
        ("[9007199254740993]", "9007199254740993"),
        ("[0.1234567890123456789]", "0.12345678901234568"),
        ('["9223372036854775807 in \\"words\\" 9223372036854775807"]', None),
        ('{"a\\\\": 9223372036854775807}', None),
    ],
)
def test_whole_numbers_are_exact(call: Call, text: str, wanted: str | None) -> None:
    got = call("core/exact.js", f"Object.values(parseExact({text!r})).map(String).join()")
    if wanted is None:
        wanted = (
            '9223372036854775807 in "words" 9223372036854775807'
            if text.startswith("[")
            else "9223372036854775807"
        )
    assert got == wanted


def test_small_numbers_stay_numbers_and_long_ones_are_no_texts(call: Call) -> None:
    kinds = call(
        "core/exact.js", "parseExact('[1, 12345678901234567890, \"x\"]').map((v) => typeof v)"
    )
    assert kinds == ["number", "bigint", "string"]


def test_fields_of_csv_are_quoted_where_they_must_be(call: Call) -> None:
    text = call(
        "core/format.js",
        """[...csv([{name: "a"}, {name: "b,c"}],
            [[1n, null], ["", 'say "x"'], ["two\\nlines", true]])].join("")""",
    )
    assert text == 'a,"b,c"\r\n1,\r\n"","say ""x"""\r\n"two\nlines",true\r\n'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("`", "````"), ("a", "`a`")],
)
def test_names_are_quoted(call: Call, text: str, wanted: str) -> None:
    assert call("core/query.js", f"quoteName({text!r})") == wanted


def test_texts_are_quoted(call: Call) -> None:
    assert call("core/query.js", r"""quoteText("it's \\ x")""") == r"'it''s \\ x'"


@pytest.mark.parametrize(
    ("text", "mistake", "marked"),
    [
        ("SELECT bad FROM t", "{line: 1, column: 8, length: 3}", "bad"),
        ("SELECT 1;\nSELECT bad", "{line: 2, column: 8, length: 3}", "bad"),
        ("SELECT '\U0001f600', bad", "{line: 1, column: 13, length: 3}", "bad"),
        ("one; two", "{line: 0, column: 0, length: 1, statement: 1}", "two"),
        ("x", "{line: 9, column: 9, length: 9}", ""),
    ],
)
def test_mistakes_are_marked_where_they_are(
    call: Call, text: str, mistake: str, marked: str
) -> None:
    code = f"spanOf({text!r}, {mistake}, [{{start: 0, end: 3}}, {{start: 5, end: 8}}])"
    span = call("pages/sql/places.js", code)
    units = text.encode("utf-16-le")
    assert units[2 * span["from"] : 2 * span["to"]].decode("utf-16-le") == marked


def test_words_of_a_shell_and_addresses_are_what_they_were(call: Call) -> None:
    assert call("pages/connect/snippets.js", 'shellWord("it\'s")') == "'it'\\''s'"
    hosts = call(
        "pages/connect/snippets.js",
        '["grpc+tls://[::1]:7702", "kafka:9092,b:1", "ws://127.0.0.1:7701/x"].map(hostOf)',
    )
    assert hosts == ["[::1]", "kafka", "127.0.0.1"]
    local = call("pages/connect/snippets.js", f"{hosts}.map(isLocal)")
    assert local == [True, False, True]


@pytest.mark.parametrize(
    ("made", "anew"),
    [
        (
            "CREATE STREAM s INTO r AS SELECT 1",
            "CREATE OR REPLACE STREAM s FILL_HISTORY 1 INTO r AS SELECT 1",
        ),
        (
            "-- of mine\nCREATE OR REPLACE STREAM d.`a b` TRIGGER AT_ONCE\nAS SELECT 1",
            "CREATE OR REPLACE STREAM d.`a b` FILL_HISTORY 1 TRIGGER AT_ONCE\nAS SELECT 1",
        ),
        (
            "create stream if not exists s fill_history 0 async on_error stop as select 'as into'",
            "CREATE OR REPLACE STREAM s FILL_HISTORY 1 ASYNC on_error stop as select 'as into'",
        ),
        ("CREATE STABLE t (ts TIMESTAMP)", None),
    ],
)
def test_a_stream_begins_anew_with_its_history(call: Call, made: str, anew: str | None) -> None:
    assert call("pages/stream/anew.js", f"anewOf({json.dumps(made)})") == anew


def test_a_statement_that_made_a_stream_is_edited_as_the_one_that_replaces_it(call: Call) -> None:
    made = "-- mine\nCREATE STREAM IF NOT EXISTS d.`a b` FILL_HISTORY 0 INTO r AS SELECT 1"
    replacing = f"replacingOf({json.dumps(made)})"
    wanted = "CREATE OR REPLACE STREAM d.`a b` FILL_HISTORY 0 INTO r AS SELECT 1"
    assert call("pages/stream/anew.js", replacing) == wanted
    assert call("pages/stream/anew.js", f"replacingOf({json.dumps(wanted)})") == wanted
    assert call("pages/stream/anew.js", "replacingOf('SELECT 1')") is None


PLAN = {
    "text": "x",
    "statements": 1,
    "lines": [["stream", "d.s"], ["replaces", "d.s"], ["state", "kept"], ["notice", "n"]],
}


@pytest.mark.parametrize(
    ("plan", "hindered"),
    [
        (None, "Check says"),
        (PLAN, None),
        (PLAN | {"text": "y"}, "has changed"),
        (PLAN | {"statements": 2}, "one statement"),
        (PLAN | {"lines": None}, "being checked"),
        (PLAN | {"lines": None, "fault": {"code": "E_SYNTAX"}}, "Mend it"),
        (PLAN | {"lines": [["stream", "d.s"]]}, "does not replace d.s"),
        (PLAN | {"lines": [["replaces", "nothing: there is no stream d.t"]]}, "does not replace"),
    ],
)
def test_only_what_was_checked_and_replaces_the_stream_may_run(
    call: Call, plan: dict[str, object] | None, hindered: str | None
) -> None:
    found = call(
        "pages/stream/replacement.js",
        f"hindrance({json.dumps(plan)}, 'x', {{database: 'd', name: 's'}})",
    )
    assert found is None if hindered is None else hindered in found


def test_what_becomes_of_a_stream_is_told_before_it_is_replaced(call: Call) -> None:
    module = "pages/stream/replacement.js"
    assert call(module, f"becomes({json.dumps(PLAN['lines'])})") == [["state", "kept"]]
    refused = {"text": "x", "fault": {"code": "E_STREAM_STATE"}}
    assert call(module, f"wantsHistory({json.dumps(refused)}, 'x')") is True
    assert call(module, f"wantsHistory({json.dumps(refused)}, 'y')") is False
    filled = json.dumps(refused | {"text": "fill_history 1"})
    assert call(module, f"wantsHistory({filled}, 'fill_history 1')") is False


def test_rights_become_rows_of_a_matrix(call: Call) -> None:
    grants = [
        {"user_name": holder, "kind": "user", "privilege": right, "object_type": kind}
        | {"db_name": database, "object_name": name}
        for holder, right, kind, database, name in (
            ("root", "ALL", "all", "*", "*"),
            ("ann", "READ", "database", "d", "*"),
            ("ann", "DROP", "database", "d", "*"),
            ("ann", "ALTER", "stream", "d", "s"),
        )
    ]
    code = (
        f"matrixOf({json.dumps(grants)}).map((row) => [row.holder, objectOf(row), ...row.rights])"
    )
    assert call("pages/users/matrix.js", code) == [
        ["ann", "`d`.*", "READ", "DROP"],
        ["ann", "STREAM `d`.`s`", "ALTER"],
        ["root", "*.*", "READ", "WRITE", "CREATE", "ALTER", "DROP", "FUNCTION", "ADMIN"],
    ]


def test_rows_of_a_dead_letter_are_sent_again_exactly(call: Call) -> None:
    kept = [
        '{"_op":0,"tbname":"t1","ts":1780300800000123,"n":9007199254740993,"d":"1.50","s":"it\'s",'
        '"x":"01ff","g":7,"_reason":"why"}',
        '{"_op":2,"tbname":"t1","ts":2,"n":null,"d":null,"s":"part","x":null}',
        '{"_op":1,"tbname":"gone","ts":3}',
        '{"_op":0,"tbname":"t1","ts":4,"n":nu',
    ]
    columns = [
        {"name": name, "type": kind, "tag": name == "g"}
        for name, kind in (
            ("ts", "TIMESTAMP"),
            ("n", "BIGINT"),
            ("d", "DECIMAL(9,2)"),
            ("s", "VARCHAR(8)"),
            ("x", "VARBINARY(8)"),
            ("g", "INT"),
        )
    ]
    read = f"rowsOf({json.dumps(chr(10).join(kept))})"
    module = "pages/letters/again.js"
    assert call(module, f"[{read}.rows.length, {read}.cut]") == [3, True]
    assert call(module, f"tablesOf({read}.rows)") == ["t1"]
    assert call(module, f"insertOf('d', 't1', {json.dumps(columns)}, {read}.rows)") == (
        "INSERT INTO `d`.`t1` (`ts`, `n`, `d`, `s`, `x`) VALUES"
        " (1780300800000123, 9007199254740993, '1.50', 'it''s', '\\\\x01ff')"
        " `d`.`t1` (`ts`, `s`) VALUES (2, 'part')"
    )


def columns_of_form(call: Call, *kinds: tuple[str, str]) -> str:
    """Return what a form writes of columns, of which a tag is called g, as text of a program."""
    columns = [{"name": name, "type": kind, "tag": name == "g"} for name, kind in kinds]
    return json.dumps(call(FORM, f"writtenOf({json.dumps(columns)})"))


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("BIGINT", " 9007199254740993 ", "9007199254740993"),
        ("DECIMAL(9,2)", "-1.50", "-1.50"),
        ("DOUBLE", "1e-3", "1e-3"),
        ("DOUBLE", "nan", "'nan'"),
        ("INT", "1), (2", "'1), (2'"),
        ("VARCHAR(8)", "", "''"),
        ("NCHAR(8)", "it's 5", "'it''s 5'"),
        ("VARBINARY", "00ff", "'\\\\x00ff'"),
        ("BOOL", "true", "true"),
        ("BOOL", "yes", "'yes'"),
        ("TIMESTAMP", "1780300800000", "1780300800000"),
        ("TIMESTAMP", "now - 1h", "now - 1h"),
        ("TIMESTAMP", "2026-01-01 00:00:00", "'2026-01-01 00:00:00'"),
        ("TIMESTAMP", "now; DROP TABLE t", "'now; DROP TABLE t'"),
    ],
)
def test_values_of_a_form_are_literals(call: Call, kind: str, text: str, wanted: str) -> None:
    field = json.dumps({"text": text, "none": False})
    assert call(FORM, f"literalOf({field}, {kind!r})") == wanted
    assert call(FORM, f"literalOf({{text: '', none: true}}, {kind!r})") == "NULL"


def test_a_form_makes_an_insert_with_a_child_table_or_without(call: Call) -> None:
    columns = columns_of_form(call, ("ts", "TIMESTAMP"), ("a`b", "INT"), ("g", "INT"))
    fields = f"emptyFields({columns})"
    new = "{database: 'd', home: 'm', child: 'c', isNew: true}"
    assert call(FORM, f"insertOf({new}, {columns}, {fields})") == (
        "INSERT INTO `d`.`c` USING `d`.`m` (`g`) TAGS (NULL) (`ts`, `a``b`) VALUES (NOW, NULL)"
    )
    plain = "{database: 'd', home: 't', child: null, isNew: false}"
    assert call(FORM, f"insertOf({plain}, {columns}, {fields})") == (
        "INSERT INTO `d`.`t` (`ts`, `a``b`) VALUES (NOW, NULL)"
    )


def test_times_and_numbers_that_come_by_themselves_are_not_asked_for(call: Call) -> None:
    columns = columns_of_form(call, ("_tp_time", "TIMESTAMP"), ("_tp_sn", "BIGINT"), ("v", "INT"))
    assert json.loads(columns) == [{"name": "v", "type": "INT", "tag": False, "needed": False}]


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        ({"message": 'row 0, column "v": 5.5 is not INT'}, "v"),
        ({"message": "'x' is not INT", "detail": 'tag "g"'}, "g"),
        ({"message": 'column "tbname": "m" is a table of its own'}, "tbname"),
        ({"message": 'there is no column "other"'}, None),
        ({"message": "the gateway does not answer"}, None),
    ],
)
def test_an_error_is_shown_at_the_field_that_it_names(
    call: Call, fault: dict[str, str], place: str | None
) -> None:
    columns = columns_of_form(call, ("ts", "TIMESTAMP"), ("v", "INT"), ("g", "INT"))
    assert call(FORM, f"placeOf({json.dumps(fault)}, {columns}) ?? null") == place


def test_what_is_stored_of_a_table_is_said_or_that_nobody_knows(call: Call) -> None:
    module = "pages/tables/words.js"
    stored = "{stored_rows: 9007199254740993n, tail_rows: 2, stored_bytes: 4000, stored_files: 1}"
    assert call(module, f"sizeWords({stored})") == {
        "rows": "9,007,199,254,740,995, 2 of them in no file yet",
        "bytes": "4 kB in 1 file",
    }
    assert "not known" in call(module, "sizeWords({stored_rows: null}).rows")
    words = [("'5d'", "'forever'"), ("null", "'forever'"), ("null", "'10d'")]
    assert [call(module, f"keepWords({own}, {home})") for own, home in words] == [
        "5d, by its own KEEP; the database's is forever",
        "for ever",
        "10d, by the database's KEEP",
    ]


def test_time_that_is_left_goes_by_the_pace_that_was_seen(call: Call) -> None:
    notes = """(...notes) => {
        const pace = new Pace();
        notes.forEach(([percent, time]) => pace.add(percent, time));
        return pace.left(notes.at(-1)[1]);
    }"""
    module = "pages/stream/pace.js"
    assert call(module, f"({notes})([10, 0], [10, 5])") is None
    assert call(module, f"({notes})([10, 0], [20, 10])") == 80
    assert call(module, f"({notes})([10, 0], [20, 10], [20, 15])") == 75
    assert call(module, f"({notes})([10, 0], [20, 10], [0, 20])") is None


def test_progress_of_a_history_is_there_while_it_is_filled(call: Call) -> None:
    shown = """(async () => {
        const { html, render } = await load("../vendor/preact.js");
        const draw = (percent) => {
            const stream = { history_percent: percent };
            render(html`<${HistoryProgress} stream=${stream} />`, document.body);
            return document.querySelector("progress")?.value ?? null;
        };
        document.body.replaceChildren();
        return [draw(40), draw(null)];
    })()"""
    assert call("pages/stream/history.js", shown) == [40, None]


def test_streams_compute_again_from_the_first_to_the_last_time(call: Call) -> None:
    module = "pages/letters/again.js"
    times = "[1780300800000000123n, null, 5, undefined, 1780300800000000124n]"
    assert call(module, f"recalculateOf('d', 's', {times})") == (
        "RECALCULATE STREAM `d`.`s` FROM 5 TO 1780300800000000124"
    )
    assert call(module, "recalculateOf('d', 's', [null])") is None


GRAPH = """graphOf({
    streams: [
        {stream_id: 1, database: "d", name: "s", source_db: "d", source_table: "t", target_db: "d",
         target_table: "r", status: "ready", rows_in_rate: 20, rows_out_rate: 2, lag_records: 5000},
        {stream_id: 2, database: "d", name: "told", source_db: "d", source_table: "r", target_table: null,
         notifies: true, events_waiting: 3, status: "failed", message: "why", rows_in_rate: 0},
    ],
    views: [{view_name: "v", db_name: "e", status: "running", source: "`d`.`r`", target: "`e`.`a``b`", rate: 1}],
    externals: [{stream_name: "a`b", db_name: "e", type: "penstock", hosts: "far:1"}],
})"""


def test_rows_flow_from_tables_through_streams_and_views_to_what_is_outside(call: Call) -> None:
    edges = call("pages/graph/model.js", f"{GRAPH}.edges.map((e) => [e.from, e.to, e.tone])")
    assert edges == [
        ["table `d`.`t`", "stream 1", "busy"],
        ["stream 1", "table `d`.`r`", "calm"],
        ["table `d`.`r`", "stream 2", "bad"],
        ["stream 2", "notify 2", "calm"],
        ["table `d`.`r`", "view `e`.`v`", "calm"],
        ["view `e`.`v`", "table `e`.`a``b`", "calm"],
    ]
    kinds = call("pages/graph/model.js", f"{GRAPH}.nodes.map((n) => n.kind)")
    assert sorted(kinds) == [
        "NOTIFY",
        "external stream",
        "stream",
        "stream",
        "table",
        "table",
        "view",
    ]
    wrong = call("pages/graph/model.js", f"troubles({GRAPH}.nodes).map((n) => [n.name, n.message])")
    assert wrong == [["told", "why"], ["targets of told", "why"]]
    inside = call("pages/graph/model.js", f"around({GRAPH}, 'e').nodes.map((n) => n.name)")
    assert inside == ["r", "v", "a`b"]


def test_a_stream_stands_still_when_records_wait_and_none_is_worked_on(call: Call) -> None:
    def stalled(*looks: tuple[int, int, int]) -> bool:
        code = (
            f"{json.dumps(looks)}.map((m => ([total, lag, at]) => m.note('s', total, lag, at))"
            "(new Movement())).at(-1).stalled"
        )
        return bool(call("pages/graph/model.js", code))

    assert stalled((5, 9, 0), (5, 9, 3_000), (5, 12, 6_000))
    assert not stalled((5, 9, 0), (5, 9, 3_000), (5, 12, 4_000))  # not long enough
    assert not stalled((5, 9, 0), (6, 9, 3_000), (6, 12, 6_000))  # it has taken a row
    assert not stalled((5, 9, 0), (5, 8, 3_000), (5, 12, 6_000))  # others' rows are worked on
    assert not stalled((5, 9, 0), (5, 0, 3_000), (5, 12, 6_000))  # nothing waited


@pytest.mark.parametrize("direction", ["LR", "TB"])
def test_what_flows_lies_in_layers_that_do_not_overlap(call: Call, direction: str) -> None:
    names = [f"n{i}" for i in range(9)]
    nodes = json.dumps([{"id": name} for name in names])
    pairs = [("n0", "n1"), ("n0", "n2"), ("n1", "n3"), ("n2", "n3"), ("n3", "n4"), ("n0", "n4")]
    edges = json.dumps([{"id": f"{a} {b}", "from": a, "to": b} for a, b in pairs])
    code = (
        "(({places, lines, width, height}) => ({places: Object.fromEntries(places), width, height,"
        " lines: Object.fromEntries(lines), curves: [...lines.values()].map(curveOf)}))"
        f"(placesOf({{nodes: {nodes}, edges: {edges}}}, {direction!r}))"
    )
    made = call("pages/graph/layout.js", code)
    along = "x" if direction == "LR" else "y"
    size = call("pages/graph/layout.js", "NODE")
    for a, b in pairs:
        assert made["places"][a][along] < made["places"][b][along]
        assert len(made["lines"][f"{a} {b}"]) >= 2
    for i, one in enumerate(names):
        here = made["places"][one]
        assert 0 < here["x"] - size["width"] / 2 and here["x"] + size["width"] / 2 < made["width"]
        for other in names[i + 1 :]:
            there = made["places"][other]
            assert (
                abs(here["x"] - there["x"]) >= size["width"]
                or abs(here["y"] - there["y"]) >= size["height"]
            ), (one, other)
    assert all(curve.startswith("M") and "NaN" not in curve for curve in made["curves"])


def test_windows_close_when_the_stream_holds_them_no_more(call: Call) -> None:
    def look(*looks: tuple[list[Any], list[Any]]) -> list[Any]:
        code = (
            f"((w, looks) => {{looks.forEach(([open, results]) => w.take(open, results)); return w.view();}})"
            f"(new Windows(), {json.dumps(looks)})"
        )
        lanes = call("pages/lane/model.js", code)["lanes"]
        return [
            [lane["group"], lane["t"], *([s["start"], s["end"], s["open"]] for s in lane["spans"])]
            for lane in lanes
        ]

    def window(group: str, start: int, t: int) -> dict[str, Any]:
        return {"group": group, "start": start, "end": start + 10, "t": t}

    first = [window("a", 0, 7), window("b", 0, 3)]
    assert look((first, [])) == [["a", 7, [0, 10, True]], ["b", 3, [0, 10, True]]]
    then = [window("a", 10, 12), window("b", 0, 4)]
    result = {"group": "b", "start": -10, "end": None}
    assert look((first, []), (then, [result])) == [
        ["a", 12, [0, 10, False], [10, 20, True]],
        ["b", 4, [-10, 0, False], [0, 10, True]],
    ]
    # a result of a window that is open, as AT_ONCE publishes it, closes nothing
    early = {"group": "a", "start": 0, "end": None}
    assert look((first, [early])) == look((first, []))


def test_times_of_the_lane_are_exact_to_the_fraction(call: Call) -> None:
    code = (
        "[millis('2026-01-01T00:00:00.5Z'), millis('2026-01-01T00:00:00.000500Z'),"
        " ofTicks(1500n, 'us'), lengthOf('10s'), lengthOf('0a'), lengthOf('2h')]"
    )
    base = 1_767_225_600_000
    assert call("pages/lane/model.js", code) == [base + 500, base + 0.5, 1.5, 10_000, 0, 7_200_000]


def test_rows_are_ordered_exactly_and_null_is_last(call: Call) -> None:
    rows = "[[9007199254740993n], [null], [9007199254740992n], [5]]"
    up = call("parts/grid_order.js", f"[...orderBy({rows}, 0, 'BIGINT', false)]")
    assert up == [3, 2, 0, 1]
    down = call("parts/grid_order.js", f"[...orderBy({rows}, 0, 'BIGINT', true)]")
    assert down == [0, 2, 3, 1]
    decimals = "[['10.00'], ['9.50'], ['-1.25']]"
    assert call("parts/grid_order.js", f"[...orderBy({decimals}, 0, 'DECIMAL(9,2)', false)]") == [
        2,
        1,
        0,
    ]


@pytest.mark.parametrize("rows", [10, 1_000, 1_000_000, 50_000_000])
def test_the_last_row_of_any_grid_is_reached(call: Call, rows: int) -> None:
    view = 400
    seen = call(
        "parts/grid_layout.js", f"seenRows({rows}, Math.max(heightOf({rows}) - {view}, 0), {view})"
    )
    assert seen["last"] == rows
    assert seen["last"] - seen["first"] < 60


def test_a_large_grid_begins_with_its_first_row(call: Call) -> None:
    seen = call("parts/grid_layout.js", "seenRows(50_000_000, 0, 400)")
    assert (seen["first"], seen["top"]) == (0, 0)
    shown = call(
        "parts/grid_layout.js",
        "seenRows(50_000_000, scrollTo(25_000_000, 50_000_000, 0, 400), 400)",
    )
    assert shown["first"] <= 25_000_000 < shown["last"]


@pytest.mark.parametrize(
    ("ticks", "precision", "text"),
    [
        ("1772355605000", "ms", "2026-03-01T09:00:05.000Z"),
        ("1772355605000001", "us", "2026-03-01T09:00:05.000001Z"),
        ("1772355605000000001", "ns", "2026-03-01T09:00:05.000000001Z"),
        ("-1", "ms", "1969-12-31T23:59:59.999Z"),
    ],
)
def test_ticks_are_written_as_the_gateway_writes_times(
    call: Call, ticks: str, precision: str, text: str
) -> None:
    assert call("core/ticks.js", f"timeText({ticks!r}, {precision!r})") == text


def test_a_time_is_seconds_with_what_is_behind_the_point(call: Call) -> None:
    assert call("core/ticks.js", "secondsOf('1970-01-01T00:01:00.250Z')") == 60.25


def test_stretches_of_few_rows_are_joined(call: Call) -> None:
    listed = [{"from": at, "to": at + 1, "rows": rows} for at, rows in ((3, 2), (2, 3), (1, 9))]
    assert call("pages/live/stretches.js", f"joined({listed}, 5)") == [
        {"from": 2, "to": 4, "rows": 5},
        {"from": 1, "to": 2, "rows": 9},
    ]


def test_each_place_of_a_long_table_is_in_one_page(call: Call) -> None:
    listed = [{"from": at, "to": at + 1, "rows": rows} for at, rows in ((3, 450), (2, 1), (1, 300))]
    made = f"const s = new Stretches({listed});"
    pages = call(
        "pages/live/stretches.js",
        f"(() => {{ {made} return s.pages(390, 460, 200).map((p) => [p.stretch.from, p.offset, p.rows]); }})()",
    )
    assert pages == [[3, 200, 200], [3, 400, 50], [2, 0, 1], [1, 0, 200]]
    places = call(
        "pages/live/stretches.js",
        f"(() => {{ {made} return [0, 449, 450, 451, 750].map((p) => [s.find(p).stretch.from, s.find(p).offset]); }})()",
    )
    assert places == [[3, 0], [3, 449], [2, 0], [1, 0], [1, 299]]
    assert call("pages/live/stretches.js", f"(() => {{ {made} return s.find(751); }})()") is None


def test_rows_that_came_become_cells_and_the_oldest_go(call: Call) -> None:
    columns = [{"name": n, "type": t} for n, t in (("ts", "TIMESTAMP"), ("b", "VARBINARY(4)"))]
    row = {"op": "upsert", "tbname": "t", "ts": "0", "b": "AP8="}
    assert call("pages/live/arrivals.js", f"cellsWith({columns}, 'ms')({json.dumps(row)})") == [
        "upsert",
        "1970-01-01T00:00:00.000Z",
        "00ff",
    ]
    code = """(() => {
        const a = new Arrivals();
        a.take([["", 1], ["", 2]], 7);
        a.show();
        for (let n = 0; n < MOST_KEPT; n += 1) a.take([["", n + 3]], 0);
        a.show();
        return [a.rows[0][1], a.rows.length, a.received, a.skipped, a.gone];
    })()"""
    assert call("pages/live/arrivals.js", code) == [1002, 1000, 1009, 7, 2]


def test_lines_of_a_chart_are_by_time_and_leave_gaps(call: Call) -> None:
    rows = [
        ["upsert", "1970-01-01T00:00:02.000Z", "b", 5],
        ["upsert", "1970-01-01T00:00:01.000Z", "a", "2.5"],
        ["delete", "1970-01-01T00:00:01.000Z", "b", 9],
        ["", "1970-01-01T00:00:01.000Z", "a", 1],
        ["", "1970-01-01T00:00:00.000Z", "a", None],
    ]
    places = "{time: 1, value: 3, group: 2}"
    assert call("pages/live/lines.js", f"linesOf({json.dumps(rows)}, {places})") == {
        "names": ["a", "b"],
        "data": [[1, 2], [2.5, None], [None, 5]],
        "left": 0,
    }


@pytest.mark.parametrize(
    ("uri", "wanted"),
    [
        ("pq://plant/scope/meters", ["plant", False, "meters"]),
        ("pq://name:17/scope/a%2Fb", ["17", False, "a/b"]),
        ("pq://17/scope/r", ["17", True, "r"]),
    ],
)
def test_uris_of_tables_are_read(call: Call, uri: str, wanted: list[object]) -> None:
    assert call("pages/live/subject.js", f"Object.values(readUri({uri!r}))") == wanted


@pytest.mark.parametrize("uri", ["dh://h/scope/t", "pq://a", "pq:///scope/t", "pq://a/scope/t?x=1"])
def test_other_uris_are_refused(call: Call, uri: str) -> None:
    code = (
        f"(() => {{ try {{ readUri({uri!r}); }} catch (error) {{ return error.fault.code; }} }})()"
    )
    assert call("pages/live/subject.js", code) == "E_URI"


def test_without_a_mesh_the_page_says_so(visit: Callable[..., Visit], files_url: str) -> None:
    one = visit(files_url)
    one.page.goto(files_url)
    # nothing behind it answers who is logged in: a form is there, and an error instead of a wait
    one.page.get_by_label("User").fill("root")
    one.page.get_by_label("Password").fill("x")
    one.page.get_by_role("button", name="Log in").click()
    one.page.get_by_role("alert").get_by_text("HTTP 404").wait_for()


#: what becomes of cells, so that those of JSON and of Arrow can be compared as texts
SHOWN = "(v) => v === null ? 'NULL' : typeof v === 'object' ? JSON.stringify(v, big) : String(v)"
BIG = "const big = (_, v) => (typeof v === 'bigint' ? String(v) : v);"


def arrow_of(answer: pa.Table) -> str:
    """Return an expression for the bytes of an answer in Arrow."""
    text = base64.b64encode(to_arrow(answer)).decode()
    return f"Uint8Array.from(atob('{text}'), (c) => c.charCodeAt(0))"


def all_types() -> pa.Table:
    """Return values of each type that an answer can have, extremes and NULL among them."""
    whole = {
        name: pa.array([low, None, high], kind)
        for name, kind, low, high in (
            ("i8", pa.int8(), -128, 127),
            ("i16", pa.int16(), -32768, 32767),
            ("i32", pa.int32(), -(2**31), 2**31 - 1),
            ("i64", pa.int64(), -(2**63), 2**63 - 1),
            ("u8", pa.uint8(), 0, 255),
            ("u16", pa.uint16(), 0, 65535),
            ("u32", pa.uint32(), 0, 2**32 - 1),
            ("u64", pa.uint64(), 2**53 + 1, 2**64 - 1),
        )
    }
    times = {
        f"t_{unit}": pa.array(
            [-1, None, 1_772_355_605_000_000_001 // scale], pa.timestamp(unit, "UTC")
        )
        for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
    }
    decimals = {
        "d": pa.array([Decimal("-0.05"), None, Decimal("9999999.90")], pa.decimal128(9, 2)),
        "d38": pa.array([Decimal(-(10**38) + 1), None, Decimal(10**37)], pa.decimal128(38, 0)),
        "d10": pa.array([Decimal("0E-10"), None, Decimal("1E-10")], pa.decimal128(20, 10)),
    }
    others = {
        "f": pa.array([0.1, None, 16777216.0], pa.float32()),
        "f_small": pa.array([1.17549435e-38, 3.4028235e38, -5.877e-39], pa.float32()),
        "g": pa.array([0.1 + 0.2, None, 5e-324], pa.float64()),
        "b": pa.array([True, None, False]),
        "s": pa.array(["", None, "z\u00e4hl \U0001f600\n"], pa.large_string()),
        "s_small": pa.array(["a", "b", None], pa.string()),
        "x": pa.array([b"", None, b"\x00\xff"], pa.large_binary()),
        "day": pa.array([date(1969, 12, 31), None, date(2026, 11, 27)]),
        "none": pa.nulls(3),
        "j": pa.array(['{"a": 9007199254740993}', None, "[1.5, null]"], pa.large_string()),
    }
    columns = whole | times | decimals | others
    fields = [
        pa.field(name, array.type, metadata={TYPE_KEY: b"JSON"} if name == "j" else None)
        for name, array in columns.items()
    ]
    made = pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
    return pa.concat_tables([made.slice(0, 2), made.slice(2)])


def test_cells_of_arrow_are_those_of_json(call: Call) -> None:
    table = all_types()
    text = json.dumps(to_tdengine(table).decode())
    code = f"""(async () => {{
        {BIG}
        const {{ parseExact }} = await load("core/exact.js");
        const show = {SHOWN};
        const {{ columns, rows }} = readAnswer({arrow_of(table)});
        const told = parseExact({text});
        const cells = (rows) => [...rows].map((row) => row.map(show));
        return [
            [columns.map(({{ name, type }}) => [name, type]), cells(rows), show(rows.at(2)[3])],
            [told.column_meta.map(([name, type]) => [name, type]), cells(told.data), "9223372036854775807"],
        ];
    }})()"""
    found, wanted = call("core/arrow_rows.js", code)
    assert found == wanted


def test_rows_of_arrow_are_ordered_as_those_of_json(call: Call) -> None:
    table = all_types()
    text = json.dumps(to_tdengine(table).decode())
    code = f"""(async () => {{
        const {{ parseExact }} = await load("core/exact.js");
        const {{ orderBy }} = await load("parts/grid_order.js");
        const {{ columns, rows }} = readAnswer({arrow_of(table)});
        const told = parseExact({text}).data;
        const order = (rows) => columns.flatMap(({{ type }}, at) =>
            [false, true].map((down) => [at, ...orderBy(rows, at, type, down)]));
        return [order(rows), order(told)];
    }})()"""
    found, wanted = call("core/arrow_rows.js", code)
    assert found == wanted


def test_an_answer_of_arrow_may_have_no_rows_and_texts_of_views(call: Call) -> None:
    code = """(() => {
        const { columns, rows } = readAnswer(%s);
        return [columns, rows.length, [...rows], rows.at(0) ?? null, rows.slice(0, 9)];
    })()"""
    empty = pa.table({"n": pa.array([], pa.int64())})
    assert call("core/arrow_rows.js", code % arrow_of(empty)) == [
        [{"name": "n", "type": "BIGINT"}],
        0,
        [],
        None,
        [],
    ]
    views = pa.table({"s": pa.array(["short", "longer than twelve bytes"], pa.string_view())})
    assert call("core/arrow_rows.js", code % arrow_of(views))[2] == [
        ["short"],
        ["longer than twelve bytes"],
    ]


def test_a_million_rows_of_arrow_are_sorted_and_written(call: Call) -> None:
    count = 1_000_000
    n = pl.int_range(count, eager=True)
    table = pl.DataFrame({"n": n * 7919 % count, "s": (n % 1000).cast(pl.String)}).to_arrow()
    call("core/arrow_rows.js", "0")
    code = f"""(async () => {{
        const {{ orderBy }} = await load("parts/grid_order.js");
        const {{ csv }} = await load("core/format.js");
        const {{ columns, rows }} = readAnswer({arrow_of(table)});
        const times = [performance.now()];
        const byNumber = orderBy(rows, 0, "BIGINT", true);
        times.push(performance.now());
        const byText = orderBy(rows, 1, "VARCHAR", false);
        times.push(performance.now());
        let characters = 0;
        for (const part of csv(columns, rows)) characters += part.length;
        times.push(performance.now());
        return {{
            ends: [byNumber[0], byNumber.at(-1)].map((place) => String(rows.at(place)[0])),
            texts: [rows.at(byText[0])[1], rows.at(byText.at(-1))[1]],
            characters,
            took: times.slice(1).map((time, at) => Math.round(time - times[at])),
        }};
    }})()"""
    found = call("core/arrow_rows.js", code)
    print(f"a million rows: numbers, texts sorted and CSV written in {found['took']} ms")
    assert found["ends"] == [str(count - 1), "0"]
    assert found["texts"] == ["0", "999"]
    assert found["characters"] == len(table.to_pandas().to_csv(index=False)) + count + 1


def test_only_what_reads_is_run_again(call: Call) -> None:
    text = "USE d; INSERT INTO t VALUES ('\U0001f600'); SELECT 1; "
    statements = [
        {"kind": kind, "start": text.index(word), "end": text.index(word) + length}
        for kind, word, length in (
            ("USE", "USE", 5),
            ("INSERT", "INSERT", 27),
            ("SELECT", "SELECT", 8),
        )
    ]
    module = "pages/sql/again.js"
    again = f"readingAgain({json.dumps(text)}, {json.dumps(statements)})"
    assert call(module, again) == "USE d;\nSELECT 1"
    assert call(module, f"readingAgain({json.dumps(text)}, {json.dumps(statements[:2])})") is None
    assert call(module, "readingAgain('', [])") is None


def test_a_followed_stream_has_the_columns_that_were_named(call: Call) -> None:
    columns = [{"name": name} for name in ("tbname", "ts", "v", "site")]
    subject = {"columns": columns, "time": "ts", "numbers": ["v"], "groups": ["tbname", "site"]}
    code = f"narrowed({json.dumps(subject)}, ['site', 'v', 'gone'])"
    assert call("pages/live/subject.js", code) == {
        "columns": [{"name": "site"}, {"name": "v"}],
        "time": "ts",
        "numbers": [],
        "groups": ["site"],
    }


@pytest.mark.parametrize(
    ("cursor", "statement", "asked"),
    [
        ("", "SELECT 1", "EXPLAIN SELECT 1"),
        ("SELECT", "SELECT 1", "EXPLAIN SELECT 1"),
        ("USE d; ", "INSERT INTO t VALUES ('\U0001f600')", None),
        ("EXPLAIN", "EXPLAIN SELECT 2", "USE d;\nEXPLAIN SELECT 2"),
        ("EXPLAIN SELECT 2; ", "EXPLAIN SELECT 2", "USE d;\nEXPLAIN SELECT 2"),
    ],
)
def test_the_statement_at_the_cursor_is_explained(
    call: Call, cursor: str, statement: str, asked: str | None
) -> None:
    """*cursor*: what ends at it."""
    texts = ("SELECT 1", "USE d", "INSERT INTO t VALUES ('\U0001f600')", "EXPLAIN SELECT 2")
    text = "  " + "; ".join(texts) + "; "
    statements = [
        {"kind": one.split()[0], "start": text.index(one), "end": text.index(one) + len(one)}
        for one in texts
    ]
    before = text[: text.index(cursor) + len(cursor)] if cursor else ""
    unit = len(before.encode("utf-16-le")) // 2
    found = call(
        "pages/sql/again.js",
        f"explanationOf({json.dumps(text)}, {json.dumps(statements)}, {unit})",
    )
    asked = asked or f"USE d;\nEXPLAIN {statement}"
    assert found == {"statement": statement, "asked": asked}
    assert call("pages/sql/again.js", "explanationOf('', [], 0)") is None


def test_values_of_one_item_of_a_plan_stand_together(call: Call) -> None:
    lines = [["query", "q"], ["plan", "sort"], ["plan", "  scan"], ["reads", "t"], ["plan", "x"]]
    assert call("parts/plan_lines.js", f"groupsOf({json.dumps(lines)})") == [
        {"item": "query", "values": ["q"]},
        {"item": "plan", "values": ["sort", "  scan"]},
        {"item": "reads", "values": ["t"]},
        {"item": "plan", "values": ["x"]},
    ]


def test_a_group_takes_rows_when_it_is_led(call: Call) -> None:
    given = """({
        groups: [
            { id: 11, alias: "", members: ["A", "B", "C"], learners: ["D"], leader: "B" },
            { id: 12, alias: "", members: ["A", "B", "C"], learners: [], leader: null },
            { id: 13, alias: "", members: ["C", "E", "F"], learners: [] },
        ],
        alive: ["A", "B"],
        tables: { "d.one": 11, "d.two": 12, "d.more": 11 },
    })"""
    found = call("pages/mesh/groups.js", f"groupsOf({given})")
    assert [(g["state"], g["leader"], g["tables"]) for g in found] == [
        ("ready", "B", ["d.one", "d.more"]),
        ("waiting", None, ["d.two"]),
        ("offline", None, []),
    ]
    assert [(n["name"], n["there"], n["learns"]) for n in found[0]["nodes"]] == [
        ("A", True, False),
        ("B", True, False),
        ("C", False, False),
        ("D", False, True),
    ]


def test_a_stretch_is_computed_again_to_its_end_or_to_now(call: Call) -> None:
    module = "pages/stream/recalculate.js"
    made = "recalculationOf('d', 'odd name', { from: ' 2026-03-01 11:00:00', to: %s })"
    wanted = "RECALCULATE STREAM `d`.`odd name` FROM '2026-03-01 11:00:00'"
    assert call(module, made % "''") == wanted
    assert call(module, made % "'2026-03-02 '") == wanted + " TO '2026-03-02'"

"""The console's pure modules, in the browser that will run them; no mesh."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.console.static_files import packaged
from tests.console.conftest import Visit

#: evaluates a text in a module's names, and gives what JSON can hold
_CALL = """async ([module, code]) => {
    const names = await import(module);
    return new Function(...Object.keys(names), `return ${code}`)(...Object.values(names));
}"""
Call = Callable[[str, str], Any]


@pytest.fixture
def call(browser: Any, files_url: str) -> Any:
    """Return what evaluates code with a module's names, on an empty page of the same origin."""
    # the page's own policy forbids to evaluate a text, so the driver goes around it
    context = browser.new_context(bypass_csp=True)
    page = context.new_page()
    page.goto(f"{files_url}/console/{packaged().version}/vendor/LICENSES.txt")
    base = f"{files_url}/console/{packaged().version}/app/"
    yield lambda module, code: page.evaluate(_CALL, [base + module, code])
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
        """csv([{name: "a"}, {name: "b,c"}], [[1n, null], ["", 'say "x"'], ["two\\nlines", true]])""",
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
        " (1780300800000123, 9007199254740993, '1.50', 'it''s', X'01ff')"
        " `d`.`t1` (`ts`, `s`) VALUES (2, 'part')"
    )


def test_streams_compute_again_from_the_first_to_the_last_time(call: Call) -> None:
    module = "pages/letters/again.js"
    times = "[1780300800000000123n, null, 5, undefined, 1780300800000000124n]"
    assert call(module, f"recalculateOf('d', 's', {times})") == (
        "RECALCULATE STREAM `d`.`s` FROM 5 TO 1780300800000000124"
    )
    assert call(module, "recalculateOf('d', 's', [null])") is None


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


def test_without_a_mesh_the_page_says_so(visit: Callable[..., Visit], files_url: str) -> None:
    one = visit(files_url)
    one.page.goto(files_url)
    # nothing behind it answers who is logged in: a form is there, and an error instead of a wait
    one.page.get_by_label("User").fill("root")
    one.page.get_by_label("Password").fill("x")
    one.page.get_by_role("button", name="Log in").click()
    one.page.get_by_role("alert").get_by_text("HTTP 404").wait_for()

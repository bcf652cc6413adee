from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wires import lines
from gateway.wires.points import Point, Unsigned


def test_a_plain_line() -> None:
    (point,), _ = lines.parse(
        'cpu,host=a,dc=x usage=0.5,n=3i,u=7u,ok=t,s="hi there" 1700000000000000000'
    )
    assert point == Point(
        "cpu",
        (("dc", "x"), ("host", "a")),
        {"usage": 0.5, "n": 3, "u": Unsigned(7), "ok": True, "s": "hi there"},
        1700000000000000000,
        1,
    )


def test_escapes_comments_blank_lines_and_newlines_in_text() -> None:
    text = '# a comment\n\nmy\\ cpu,ho\\,st=a\\ b,e\\=q=c\\=d f\\ 1="a \\"b\\"\n=,c" 5\r\nx v=1'
    (first, second), refused = lines.parse(text)
    assert refused == []
    assert first == Point("my cpu", (("e=q", "c=d"), ("ho,st", "a b")), {"f 1": 'a "b"\n=,c'}, 5, 3)
    assert (second.measurement, second.line, second.time) == ("x", 5, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cpu", "at least one field"),
        ("cpu,host=a", "no fields"),
        ("cpu,host v=1", "not key=value"),
        ("cpu v=", "no value"),
        ("cpu v=abc", "not a number"),
        ('cpu v="abc', "no end"),
        ("cpu v=1 12x", "not a timestamp"),
        ("cpu v=99999999999999999999i", "not a number"),
        ("cpu v=-1u", "not a number"),
        ("cpu,a=1,a=2 v=1", "twice"),
        (",a=1 v=1", "measurement"),
        ("cpu v=1,", "not key=value"),
    ],
)
def test_bad_lines_tell_number_and_reason(text: str, words: str) -> None:
    points, (refused,) = lines.parse("ok v=1\n" + text + "\nok v=2")
    assert words in refused.message and refused.line == 2
    assert [(p.line, p.fields["v"]) for p in points] == [(1, 1.0), (3, 2.0)], (
        "a bad line costs only itself"
    )


def test_a_value_without_an_end_does_not_take_other_lines_along() -> None:
    points, (refused,) = lines.parse('a v=1\nb s="no end\nc v=3\nd s="whole" 4')
    assert refused.line == 2 and "no end" in refused.message
    assert [(p.measurement, p.line) for p in points] == [("a", 1), ("c", 3), ("d", 4)]


def test_text_inside_a_bad_line_is_no_line() -> None:
    points, (refused,) = lines.parse('b v=oops,s="one\nc v=3\ntwo" 1\nd v=4')
    assert refused.line == 1 and [(p.measurement, p.line) for p in points] == [("d", 4)]


@given(st.text(max_size=60))
def test_any_text_is_points_or_a_line_error(text: str) -> None:
    points, refused = lines.parse(text)
    assert len({e.line for e in refused} | {p.line for p in points}) == len(refused) + len(points)


names = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\\"),
    min_size=1,
    max_size=8,
).filter(lambda s: s == s.strip() and not s.startswith("#") and '"' not in s)


@given(
    names,
    st.dictionaries(names, names, max_size=3),
    st.dictionaries(
        names, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3
    ),
)
def test_what_is_escaped_comes_back(
    measurement: str, tags: dict[str, str], fields: dict[str, float]
) -> None:
    def escape(text: str) -> str:
        return "".join("\\" + c if c in ",= " else c for c in text)

    line = ",".join(
        [
            escape(measurement).replace("\\=", "="),
            *(f"{escape(k)}={escape(v)}" for k, v in tags.items()),
        ]
    )
    line += " " + ",".join(f"{escape(k)}={v!r}" for k, v in fields.items())
    (point,), _ = lines.parse(line)
    assert (point.measurement, dict(point.tags), point.fields) == (measurement, tags, fields)


def test_parsing_takes_time_in_proportion_to_the_text() -> None:
    def seconds(text: str) -> float:
        begun = time.process_time()
        lines.parse(text)
        return time.process_time() - begun

    for piece in ("\n", '"\n', "\\\n", ' f="\n', "#\n", "a=1,", "a\\ "):
        assert seconds('m f="' + piece * (200_000 // len(piece))) < 3.0


@pytest.mark.parametrize(
    "line", ["m f=1 " + "1" * 5000, "m f=1 " + "9" * 20, "m f=" + "9" * 400, "m f=1e999", "m f=1 ٣"]
)
def test_numbers_that_are_none(line: str) -> None:
    assert lines.parse(line)[0] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"C:\\"', "C:\\"),
        (r'"\\"', "\\"),
        (r'"a\"b"', 'a"b'),
        (r'"a\\\"b"', 'a\\"b'),
        (r'"a\nb"', r"a\nb"),
        (r'"\\\\"', r"\\"),
    ],
)
def test_a_string_with_backslashes_is_one_string(text: str, value: str) -> None:
    points, _ = lines.parse(f'm s={text} 1\nm s="next" 2')
    assert [p.fields["s"] for p in points] == [value, "next"]

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import lines
from gateway.lines import LineError, Point, Unsigned


def test_a_plain_line() -> None:
    (point,) = lines.parse('cpu,host=a,dc=x usage=0.5,n=3i,u=7u,ok=t,s="hi there" 1700000000000000000')
    assert point == Point(
        "cpu", (("dc", "x"), ("host", "a")), {"usage": 0.5, "n": 3, "u": Unsigned(7), "ok": True, "s": "hi there"}, 1700000000000000000, 1
    )


def test_escapes_comments_blank_lines_and_newlines_in_text() -> None:
    text = '# a comment\n\nmy\\ cpu,ho\\,st=a\\ b,e\\=q=c\\=d f\\ 1="a \\"b\\"\n=,c" 5\r\nx v=1'
    first, second = lines.parse(text)
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
    with pytest.raises(LineError, match=words) as caught:
        lines.parse("ok v=1\n" + text)
    assert caught.value.line == 2


@given(st.text(max_size=60))
def test_any_text_is_points_or_a_line_error(text: str) -> None:
    try:
        lines.parse(text)
    except LineError:
        pass


names = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\\"), min_size=1, max_size=8).filter(
    lambda s: s == s.strip() and not s.startswith("#") and '"' not in s
)


@given(
    names,
    st.dictionaries(names, names, max_size=3),
    st.dictionaries(names, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3),
)
def test_what_is_escaped_comes_back(measurement: str, tags: dict[str, str], fields: dict[str, float]) -> None:
    def escape(text: str) -> str:
        return "".join("\\" + c if c in ",= " else c for c in text)

    line = ",".join([escape(measurement).replace("\\=", "="), *(f"{escape(k)}={escape(v)}" for k, v in tags.items())])
    line += " " + ",".join(f"{escape(k)}={v!r}" for k, v in fields.items())
    (point,) = lines.parse(line)
    assert (point.measurement, dict(point.tags), point.fields) == (measurement, tags, fields)

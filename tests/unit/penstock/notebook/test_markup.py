"""What a notebook shows of names and values that others have chosen."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from penstock.notebook.markup import line, names_line, table_html
from penstock.notebook.view import NotebookView

HOSTILE = '<img src=x onerror="alert(1)">&"\'</td></table><script>x</script>'


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)


def test_names_and_values_are_text_and_no_markup() -> None:
    shown = NotebookView(
        f"table {HOSTILE}", HOSTILE, [HOSTILE], [HOSTILE], [[HOSTILE], [HOSTILE.encode()]]
    )
    assert _Tags(shown._repr_html_()).tags == {
        "p",
        "b",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert "<script" not in shown._repr_html_() and "<img" not in shown._repr_html_()


def test_formulas_of_values_are_not_set() -> None:
    assert re.match(r'<table class="[^"]*mathjax_ignore', table_html(["a"], [["$x^2$"]]))


def test_much_is_cut() -> None:
    wide = [f"c{i}" for i in range(1_000)]
    shown = table_html(wide, [["v" * 10_000_000] * 1_000], hidden_rows=7)
    assert len(shown) < 20_000
    assert shown.count("<th>") == 50 == shown.count("<td>")
    assert shown.endswith("<p>and 7 more rows and 950 more columns</p>")
    assert shown.count("v" * 199 + "…") == 50
    assert len(table_html(["n" * 100_000], [])) < 300
    text = repr(NotebookView("table " + "t" * 10_000, "s" * 10_000, ["f" * 10_000], wide, []))
    assert len(text) < 2_000 and text.endswith("c49 and 950 more>")


def test_a_line_is_one_line_and_no_order_to_a_terminal() -> None:
    assert line("a\nb\x1b[31m\u202e\u200b") == "a\\nb\\x1b[31m\\u202e\\u200b"
    assert names_line(["größe", "a\r"]) == "größe, a\\r"
    assert len(line("\x00" * 1_000)) == 80


def test_null_is_no_text() -> None:
    assert table_html(["a"], [[None], [""], [0], [b"x"]]).count("<td>NULL</td>") == 1

"""penstock logs: entries of all services in the order of time, by level, time and trace."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.cli import app, logs
from penstock.cli.log_entries import entries_of, newest_first, parse_line, readable
from penstock.errors import ConfigError
from penstock.mesh.layout import Layout
from penstock.runtime.log_entries import LogEntry, LogFilter

NOW = datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC)


def line(second: int, event: str, level: str = "info", **more: Any) -> str:
    time = (NOW + timedelta(seconds=second)).isoformat()
    return json.dumps({"timestamp": time, "level": level, "event": event, **more}) + "\n"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.logs.mkdir()
    made.log("gateway").write_text(
        line(1, "first", user="root")
        + line(4, "broken", "error", exception="Traceback\n  where")
        + line(5, "about it", trace="order-17"),
        encoding="utf-8",
    )
    made.log("store").write_text(
        line(2, "second", trace="order-17") + line(3, "odd", "warning"), encoding="utf-8"
    )
    made.log("audit").write_text(line(1, "first", user="root"), encoding="utf-8")
    return made


def run(layout: Layout, *words: str) -> Result:
    return CliRunner().invoke(app, ["logs", *words, "--data-dir", str(layout.root)])


def events(done: Result) -> list[str]:
    assert done.exit_code == 0, done.exception
    return [json.loads(text)["event"] for text in done.stdout.splitlines()]


def test_all_services_in_the_order_of_time(layout: Layout) -> None:
    assert events(run(layout, "--raw")) == ["first", "second", "odd", "broken", "about it"]
    assert events(run(layout, "store", "--raw")) == ["second", "odd"]
    assert events(run(layout, "--raw", "-n", "2")) == ["broken", "about it"]
    assert events(run(layout, "--raw", "-n", "0")) == []


def test_by_level_time_and_trace(layout: Layout) -> None:
    assert events(run(layout, "--raw", "--level", "warning")) == ["odd", "broken"]
    assert events(run(layout, "--raw", "--since", "2026-03-01T09:00:03")) == [
        "odd",
        "broken",
        "about it",
    ]
    assert events(run(layout, "--raw", "--since", "1m")) == []
    assert events(run(layout, "--raw", "--trace", "order-17")) == ["second", "about it"]


def test_entries_are_for_people(layout: Layout) -> None:
    lines = run(layout, "gateway").stdout.splitlines()
    assert lines[0] == "2026-03-01 09:00:01.000Z INFO     gateway    first user=root"
    assert lines[1:4] == [
        "2026-03-01 09:00:04.000Z ERROR    gateway    broken",
        "    Traceback",
        "      where",
    ]


def test_logs_that_were_put_aside_are_read_too(layout: Layout) -> None:
    aside = layout.logs / "store.log.1"
    aside.write_text(line(-10, "long ago"), encoding="utf-8")
    assert events(run(layout, "store", "--raw")) == ["long ago", "second", "odd"]
    assert events(run(layout, "store", "--raw", "-n", "2")) == ["second", "odd"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("attic",), "no log of attic"),
        (("--since", "soon"), "soon is no time"),
        (("--since", "99999999999w"), "is no time"),
    ],
)
def test_what_there_is_not_is_said(layout: Layout, words: tuple[str, ...], said: str) -> None:
    done = run(layout, *words)
    assert isinstance(done.exception, ConfigError) and said in str(done.exception)


def test_without_a_mesh_there_are_no_logs(tmp_path: Path) -> None:
    assert "no logs in" in str(run(Layout(tmp_path)).exception)


@pytest.mark.parametrize(
    ("text", "level", "said"),
    [
        (
            "2026-11-26T15:40:20,491 INFO [Kafka id=1] started (kafka)",
            "info",
            "[Kafka id=1] started (kafka)",
        ),
        ("2026-11-26T15:40:20,491 WARN x", "warning", "x"),
        ("26/11/26 15:40:20 FATAL SparkContext: gone", "critical", "SparkContext: gone"),
        ("16307:M 26 Nov 2026 15:40:20.678 # bye", "warning", "bye"),
        ("16307:M 26 Nov 2026 15:40:20.678 * ready", "info", "ready"),
    ],
)
def test_lines_of_other_programs(text: str, level: str, said: str) -> None:
    entry = parse_line(text, "x")
    assert entry is not None
    assert (entry.level, entry.text[:20]) == (level, said[:20])
    local = entry.time.astimezone()
    assert (local.month, local.hour, local.minute, local.second) == (11, 15, 40, 20)


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):",
        "{",
        '{"event": "no time"}',
        '{"timestamp": 5}',
        '{"timestamp": "soon"}',
        "[" * 50_000,
        "1:M 99 Foo 2026 99:99:99.678 * x",
        "",
    ],
)
def test_what_is_no_entry_continues_the_one_before(text: str) -> None:
    assert parse_line(text, "x") is None
    [entry] = entries_of([line(1, "a").strip(), text], "x")
    assert (entry.text, entry.lines[1:]) == ("a", (text,))


def test_backwards_is_forwards_turned_round(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    lines = ["left over"]
    for n in range(3000):
        lines.append(line(n, f"event {n} " + "ä" * (n % 300)).strip())
        lines += [f"  more {n}"] * (n % 3)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    forwards = list(entries_of(lines, "x"))
    assert list(newest_first([path, tmp_path / "absent.log"], "x")) == forwards[::-1]


def test_nothing_moves_the_cursor() -> None:
    entry = LogEntry(NOW, "info", "x", "a\x1b[2Jb", ("l", "c\x07"), {"k": "v\rw", "e": ""})
    text = readable(entry)
    assert text.count("\n") == 1
    assert not any(ord(c) < 32 and c != "\n" for c in text)


def test_it_goes_on_as_logs_grow(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    turns = iter(range(3))

    def turn(_: float) -> None:
        number = next(turns, None)
        if number == 0:
            with layout.log("store").open("a", encoding="utf-8") as log:
                log.write(line(7, "later") + '{"half')
            layout.log("notifier").write_text(line(6, "new"), encoding="utf-8")
        elif number == 1:
            layout.log("store").write_text(line(8, "anew"), encoding="utf-8")
        elif number is None:
            raise KeyboardInterrupt

    monkeypatch.setattr("penstock.cli.logs.time.sleep", turn)
    sizes = {path: path.stat().st_size for path in layout.logs.glob("*.log")}
    with pytest.raises(KeyboardInterrupt):
        logs._follow(layout, [], sizes, LogFilter(), lambda e: seen.append(e.text))
    assert seen == ["new", "later", "anew"]

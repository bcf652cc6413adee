from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.setup import jar_download, jars


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Maven repository on loopback with one jar, and a lock that pins it."""
    root = tmp_path / "repository"
    file = root / "org" / "x" / "thing" / "1.0" / "thing-1.0.jar"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"jar of one")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(root))  # type: ignore[arg-type]

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PENSTOCK_MAVEN_URL", f"http://127.0.0.1:{server.server_address[1]}/")
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(
        jars,
        "_lock_text",
        lambda: f"broker org.x:thing:1.0 {hashlib.sha256(b'jar of one').hexdigest()}\n",
    )
    yield file
    server.shutdown()
    server.server_close()


def test_fetched_once_and_then_from_the_cache(repository: Path) -> None:
    with pytest.raises(ConfigError, match="make setup"):
        jars.paths("broker")
    (path,) = jar_download.fetch("broker")
    assert path.read_bytes() == b"jar of one"
    repository.unlink()
    assert jar_download.fetch("broker") == [path] == jars.paths("broker")


def test_another_jar_than_the_pinned_one_is_refused(repository: Path) -> None:
    repository.write_bytes(b"something else")
    with pytest.raises(ConfigError, match=r"org\.x:thing:1\.0"):
        jar_download.fetch("broker")
    with pytest.raises(ConfigError):
        jars.paths("broker")


def test_lock_pins_every_jar() -> None:
    broker = jars.read_lock("broker")
    spark = jars.read_lock("spark")
    assert len(broker) == 92 and len(spark) == 6
    assert all(len(jar.sha256) == 64 for jar in broker + spark)
    assert len({jar.file_name for jar in broker}) == len(broker)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "<mirrors><mirror><mirrorOf>*</mirrorOf><url>http://a/m</url></mirror></mirrors>",
            "http://a/m",
        ),
        (
            "<mirrors><mirror><mirrorOf>other</mirrorOf><url>http://a/m</url></mirror></mirrors>",
            None,
        ),
        (
            "<profiles><profile><repositories><repository><url>http://b/</url></repository></repositories></profile></profiles>",
            "http://b/",
        ),
        ("", None),
    ],
)
def test_mirror_of_the_maven_settings(tmp_path: Path, body: str, expected: str | None) -> None:
    path = tmp_path / "settings.xml"
    path.write_text(f'<settings xmlns="urn:settings">{body}</settings>')
    assert jar_download._settings_mirror(path) == expected


def test_default_repository_comes_from_ivy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PENSTOCK_MAVEN_URL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert jar_download.repository().endswith("/maven2")

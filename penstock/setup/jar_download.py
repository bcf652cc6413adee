"""Fetches the pinned jars once, checks them by SHA-256 and keeps them in a cache.

No repository is named here: `$PENSTOCK_MAVEN_URL`, else the mirror in ~/.m2/settings.xml, else the
default that the Ivy inside pyspark carries. Refused: a jar whose digest differs, and any version
that the lock does not name.
"""

from __future__ import annotations

import importlib.util
import os
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from xml.etree import ElementTree

import pooch
import requests
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from penstock.errors import ConfigError
from penstock.setup.jars import Jar, JarSet, cache_directory, paths, read_lock, stamp

_THREADS = 8


def fetch(which: JarSet, console: Console | None = None) -> list[Path]:
    """Download what is missing of one set, several at a time, with one progress bar.

    Raises:
        ConfigError: the repository cannot be reached, or a jar is not the pinned one.
    """
    if stamp(which).exists():
        return paths(which)
    base = repository()
    directory = cache_directory() / "jars" / which
    directory.mkdir(parents=True, exist_ok=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("jars"),
    )
    with (
        Progress(*columns, console=console or Console(stderr=True)) as progress,
        ThreadPoolExecutor(_THREADS, thread_name_prefix="jars") as pool,
    ):
        task = progress.add_task(f"{which} jars", total=len(read_lock(which)))
        waiting = {
            pool.submit(_retrieve, f"{base}/{jar.path}", jar, directory): jar
            for jar in read_lock(which)
        }
        for done in as_completed(waiting):
            try:
                done.result()
            except (requests.RequestException, ValueError, OSError) as wrong:
                pool.shutdown(cancel_futures=True)
                jar = waiting[done]
                raise ConfigError(
                    f"could not fetch {jar.group}:{jar.artifact}:{jar.version}",
                    detail=f"{type(wrong).__name__}: {wrong}",
                    hint=(
                        "behind a mirror, set PENSTOCK_MAVEN_URL; for a private CA,"
                        " REQUESTS_CA_BUNDLE"
                    ),
                ) from wrong
            progress.advance(task)
    stamp(which).touch()
    return paths(which)


@retry(
    retry=retry_if_exception_type(requests.RequestException),
    stop=stop_after_attempt(4),
    wait=wait_exponential_jitter(initial=1, max=10),
    reraise=True,
)
def _retrieve(url: str, jar: Jar, directory: Path) -> None:
    pooch.get_logger().setLevel("WARNING")
    pooch.retrieve(
        url,
        known_hash=f"sha256:{jar.sha256}",
        fname=jar.file_name,
        path=directory,
        downloader=pooch.HTTPDownloader(timeout=120),
    )


def repository() -> str:
    """Base address of the Maven repository this machine uses, without a slash at the end.

    Raises:
        ConfigError: nothing names one.
    """
    found = (
        os.environ.get("PENSTOCK_MAVEN_URL")
        or _settings_mirror(Path.home() / ".m2" / "settings.xml")
        or _ivy_default()
    )
    if not found:
        raise ConfigError(
            "no Maven repository is known",
            hint="set PENSTOCK_MAVEN_URL, or install pyspark (`make setup`)",
        )
    return found.rstrip("/")


def _settings_mirror(settings: Path) -> str | None:
    """Find the mirror of central, else the first repository, in a Maven settings file."""
    try:
        root = ElementTree.parse(settings).getroot()
    except (OSError, ElementTree.ParseError):
        return None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    for mirror in root.iter("mirror"):
        mirrored = {part.strip() for part in (mirror.findtext("mirrorOf") or "").split(",")}
        if mirrored & {"*", "central", "external:*"}:
            return (mirror.findtext("url") or "").strip() or None
    addresses = ((r.findtext("url") or "").strip() for r in root.iter("repository"))
    return next(filter(None, addresses), None)


def _ivy_default() -> str | None:
    """The Maven 2 root among the constants of Ivy's own resolver."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        return None
    for jar in sorted(Path(spec.submodule_search_locations[0], "jars").glob("ivy-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            constants = archive.read("org/apache/ivy/plugins/resolver/IBiblioResolver.class")
        for address in re.findall(rb"https://[\x21-\x7e]+/maven2/", constants):
            return str(address.decode())
    return None

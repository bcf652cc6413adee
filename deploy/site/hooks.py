"""What mkdocs does besides: pages that stand elsewhere in the repository become pages of the site.

README, ARCHITECTURE and the services' pages are read where the code is, so they are not in
`docs/`. The site shows them, too; links between all of them are written for the repository, and
lead to the same pages of the site here.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from deploy.site.reference import PAGES

ROOT = Path(__file__).parents[2]
#: page of the repository → page of the site, both with their folders
ELSEWHERE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "reporting.md",
    "bench/README.md": "bench/how.md",
    "bench/RESULTS.md": "bench/results.md",
    "tests/sql/README.md": "corpus.md",
    "gateway/README.md": "services/gateway.md",
    "spark_jobs/README.md": "services/spark_jobs.md",
    **{
        f"services/{name}/README.md": f"services/{name}.md"
        for name in ("federation", "notifier", "snode", "store", "tables")
    },
}
_SITE = {page: place for place, page in ELSEWHERE.items()}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)((?:#[^)\s]*)?)\)")
#: blocks that tests run or leave out say so behind their language, which mkdocs does not know
_FENCE = re.compile(r"^```(\w+) norun$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand elsewhere, and those that are made of the code."""
    texts = {page: (ROOT / place).read_text(encoding="utf-8") for place, page in ELSEWHERE.items()}
    texts |= {page: make() for page, make in PAGES.items()}
    for page, text in texts.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to pages of the site. Raises PluginError: one leads to nothing."""
    here = page.file.src_uri
    folder = PurePosixPath(_SITE.get(here, f"docs/{here}")).parent

    def follow(link: re.Match[str]) -> str:
        label, target, anchor = link.groups()
        if "://" in target or target in PAGES:
            return link.group()
        found = _site_place(str(folder), target, here)
        if found is None:
            return label
        return f"[{label}]({os.path.relpath(found, os.path.dirname(here) or '.')}{anchor})"

    return _FENCE.sub(r"```\1", _LINK.sub(follow, markdown))


def _site_place(folder: str, target: str, page: str) -> str | None:
    """Return where the site has what *target* means in *folder* of the repository; None: it does
    not have it, as with files of the code.
    """
    if target.removeprefix("../") in PAGES:
        return target.removeprefix("../")
    place = os.path.normpath(os.path.join(folder, target))
    if not (ROOT / place).exists():
        raise PluginError(f"{page}: the link {target} leads to nothing")
    if place in ELSEWHERE:
        return ELSEWHERE[place]
    return place.removeprefix("docs/") if place.startswith("docs/") else None

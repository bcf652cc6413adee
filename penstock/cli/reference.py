"""The reference of all commands in docs/cli-reference.md, made of the commands themselves:
`python -m penstock.cli.reference` writes it.
"""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from penstock.cli import app
from penstock.cli.lazy import PLACES

if TYPE_CHECKING:
    from typer._click.core import Command, Context

PAGE = Path(__file__).parents[2] / "docs" / "cli-reference.md"
_BEGIN = "<!-- commands -->"
_END = "<!-- /commands -->"
#: options that the page explains at its beginning
COMMON = ("--data-dir", "--url", "--user", "--password-file", "--help")
_EXAMPLE = "Example: "


def fill(page: str) -> str:
    """Return *page* with the reference between its two marks."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n\n{_reference()}\n{_END}{after}"


def _reference() -> str:
    for place in PLACES.values():
        importlib.import_module(f"penstock.cli.{place.module}")
    return "\n".join(
        _section(name, command)
        for top in PLACES
        for name, command in _commands(top, typer.main.get_group(app).commands[top])
    )


def _commands(name: str, command: Command) -> Iterator[tuple[str, Command]]:
    """Yield a command, or those of a group; one that is hidden is what its group does alone."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for word, one in inner.items():
        yield name if one.hidden else f"{name} {word}", one


def _section(name: str, command: Command) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join(["penstock", name, *(_argument(a) for a in arguments)])
    examples, text = _help_of(command)
    block = "\n".join([usage, *examples])
    parts = [f"## {name}\n", f"```text\n{block}\n```\n", "\n\n".join(text) + "\n"]
    context = command.make_context(name, [], resilient_parsing=True)
    rows = [_row(p, context) for p in (*arguments, *options) if _is_shown(p)]
    if rows:
        parts.append("\n".join(["| | |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _help_of(command: Command) -> tuple[list[str], list[str]]:
    """Return the examples of a command's help, and its other paragraphs."""
    paragraphs = [" ".join(p.split()) for p in (command.help or "").split("\n\n")]
    examples = [p.removeprefix(_EXAMPLE) for p in paragraphs if p.startswith(_EXAMPLE)]
    return examples, [textwrap.fill(p, 100) for p in paragraphs if not p.startswith(_EXAMPLE)]


def _argument(argument: Any) -> str:
    name = str(argument.name).upper()
    return name if argument.required else f"[{name}]"


def _is_shown(parameter: Any) -> bool:
    hidden = getattr(parameter, "hidden", False)
    return bool(parameter.help) and not hidden and not set(COMMON) & set(parameter.opts)


def _row(parameter: Any, context: Context) -> str:
    names, text = parameter.get_help_record(context)
    if parameter.param_type_name == "argument":
        names = str(parameter.name).upper()
    shown = [" ".join(part.split()).replace("|", r"\|") for part in (names, text)]
    return f"| `{shown[0]}` | {shown[1]} |"


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

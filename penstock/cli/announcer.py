"""What `penstock up` says while a mesh comes up: where SQL is answered, and when streams start."""

from __future__ import annotations

import time
from typing import Any

from rich.console import Console

from penstock.cli.login_link import login_link
from penstock.mesh.layout import Layout
from penstock.setup.service_packages import SQL_SERVICES


class Announcer:
    """Says each thing once, as soon as it is true."""

    def __init__(self, layout: Layout, console: Console) -> None:
        """
        Args:
            layout: of the mesh.
            console: to say it on.
        """
        self._layout = layout
        self._console = console
        self._sql = False
        self._all = False

    def see(self, state: dict[str, Any]) -> None:
        """Take a state of the mesh, and say what has come true with it."""
        services = state["services"]
        asked = [name for name in SQL_SERVICES if name in services]
        if not self._sql and "gateway" in services and _are_ready(services, asked):
            self._sql = True
            self._say_address(state)
            if not state["ready"]:
                self._say(f"  SQL is answered; {_rest(state)}")
        if not self._all and state["ready"]:
            self._all = True
            self._say(f"  all is ready after {time.time() - state['started']:.0f} s\n")

    def _say_address(self, state: dict[str, Any]) -> None:
        url = state["settings"]["PENSTOCK_GATEWAY_URL"]
        secret = self._layout.secret("root")
        self._say(f"\n  Penstock is up: {url}")
        self._say(
            f"  log in with a browser (once, within 15 minutes): {login_link(self._layout, url)}"
        )
        self._say(f"  user root, password {secret.read_text(encoding='utf-8').strip()}")
        self._say(f"  (kept in {secret})\n")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)


def _are_ready(services: dict[str, Any], names: list[str]) -> bool:
    return all(services[name]["state"] == "ready" for name in names)


def _rest(state: dict[str, Any]) -> str:
    """Say what is still to come, and when, as far as the last start tells."""
    what = "streams start" if "spark" in state["services"] else "the rest starts"
    if state["last_start_seconds"] is None:
        return f"{what} now"
    left = state["last_start_seconds"] - (time.time() - state["started"])
    return f"{what} in about {left:.0f} s" if left >= 1 else f"{what} now"
